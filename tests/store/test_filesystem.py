from pathlib import Path

import pytest

from kdx.store.filesystem import NETWORK, filesystem

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /home rw,relatime shared:2 master:3 - autofs systemd-1 rw
31 30 0:41 / /home rw,relatime - nfs4 server:/home rw
32 27 0:42 / /mnt/my\040share rw - cifs //server/share rw
33 27 0:43 / /mnt/ssh rw,nosuid - fuse.sshfs me@host: rw
34 27 0:44 / /scratch rw - lustre mgs:/fs rw
35 27 0:45 / /home/local rw - xfs /dev/vdb rw
not a mount
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/runs.db", "ext4"),
        ("/home/me/runs.db", "nfs4"),
        ("/homework/runs.db", "ext4"),
        ("/home/local/me/runs.db", "xfs"),
        ("/mnt/my share/runs.db", "cifs"),
        ("/mnt/ssh/a/b/runs.db", "fuse.sshfs"),
        ("/scratch/runs.db", "lustre"),
        ("/home/local/../me/runs.db", "nfs4"),
    ],
)
def test_the_deepest_and_last_mount_tells_the_kind(path: str, kind: str):
    assert filesystem(Path(path), MOUNTS) == kind


def test_a_link_is_followed_to_where_the_file_is(tmp_path: Path):
    (tmp_path / "link").symlink_to("/scratch")
    assert filesystem(tmp_path / "link" / "runs.db", MOUNTS) == "lustre"


def test_of_no_mounts_nothing_is_known():
    assert filesystem(Path("/runs.db"), "") is None


def test_this_machine_is_asked():
    assert filesystem(Path("/proc/self/status")) == "proc"
    assert "proc" not in NETWORK


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre", "ceph", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse"],
)
def test_what_several_machines_write_is_a_network_file_system(kind: str):
    assert kind in NETWORK


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", None])
def test_a_local_disk_is_none(kind: str | None):
    assert kind not in NETWORK
