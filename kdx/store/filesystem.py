"""Finds the kind of file system on which a file lies.

SQLite relies on locks and on synced writes, which network file systems do not guarantee: two machines, or one after a
lost connection, can then write the same page. So a results database on such a file system is opened only to read.
"""

import re
from pathlib import Path

NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "wekafs", "fuse.ceph", "fuse.davfs",
    "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.juicefs", "fuse.moosefs", "fuse.quobyte", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse",
})  # fmt: skip
"""File systems that several (virtual) machines write, by the kernel's names in /proc/self/mounts."""


def filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The kind of file system on which `path` lies, which need not exist yet; None where the system does not say.

    statfs is of no use here, since it does not distinguish file systems in user space.

    Args:
        mounts: text in the form of /proc/self/mounts; None for that of this process.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except OSError:
            return None
    place = path.resolve()
    kind, depth = None, 0
    for line in mounts.splitlines():
        _, folder, kind_there, *_ = line.split(" ")
        mount = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), folder))
        # A later mount at the same place hides the earlier one.
        if place.is_relative_to(mount) and len(mount.parts) >= depth:
            kind, depth = kind_there, len(mount.parts)
    return kind
