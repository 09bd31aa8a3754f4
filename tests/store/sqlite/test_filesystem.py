from pathlib import Path

import pytest

from kdx.store.sqlite.file import NETWORK, filesystem

MOUNTS = r"""proc /proc proc rw 0 0
/dev/vda / ext4 rw,relatime 0 0
systemd-1 /home autofs rw 0 0
server:/home /home nfs4 rw 0 0
//server/share /mnt/my\040share cifs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
mgs:/fs /scratch lustre rw 0 0
/dev/vdb /home/local xfs rw 0 0
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


def test_what_several_machines_write_is_a_network_file_system():
    assert {"nfs4", "cifs", "fuse.sshfs", "9p", "lustre", "virtiofs"} <= NETWORK
    assert not {"ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk"} & NETWORK
