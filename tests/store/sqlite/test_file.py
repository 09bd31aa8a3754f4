"""Files that are refused, each in full and untouched, and a file that does not stay the one that was opened."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event
from stored import CELL, add_cell, cells, digest, refusal

from kdx.errors import DatabaseError, StorageError
from kdx.store.database import Database, open_database
from kdx.store.refusals import BY
from kdx.store.sqlite import file as module
from kdx.store.sqlite.file import APPLICATION_ID, NETWORK, filesystem

NAME_ANOTHER = f"  hint: nothing was changed; name the results database with {BY}"


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    database = open_database("runs.db", write=True, create=True)
    monkeypatch.chdir("/")
    add_cell(database)
    assert cells(database) == [CELL]


def test_an_empty_file_becomes_a_database_when_one_is_to_be_made(path: Path):
    path.touch()
    with open_database(path, write=True, create=True) as database:
        assert cells(database) == []


def test_the_folder_of_a_new_database_must_be_there(tmp_path: Path):
    path = tmp_path / "results" / "runs.db"
    message = refusal(path, write=True, create=True)
    assert message == f"{path}: there is no folder {path.parent}\n  hint: make it first"


def test_a_file_that_cannot_be_reached_is_reported(tmp_path: Path):
    path = tmp_path / ("n" * 300)
    assert refusal(path, write=True, create=True) == f"{path}: this file cannot be reached: File name too long"


def test_a_file_that_the_disk_cannot_hold_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch):
    def touch(self: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "touch", touch)
    with pytest.raises(StorageError) as caught:
        open_database(path, write=True, create=True)
    assert str(caught.value) == f"{path}: this file cannot be made: No space left on device"


def test_a_folder_or_a_named_pipe_is_no_database(tmp_path: Path):
    assert refusal(tmp_path) == f"{tmp_path}: this is a folder, not a database\n{NAME_ANOTHER}"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == f"{tmp_path}/pipe: this is a named pipe, not a database\n{NAME_ANOTHER}"


@pytest.mark.parametrize("options", [{"write": False}, {"write": True}, {"write": True, "create": True}])
@pytest.mark.parametrize("content", [b"kernel: rbf\n" * 100, b"\x00" * 4096, b"short"], ids=["text", "zeros", "short"])
def test_a_file_of_another_kind_is_refused_untouched(path: Path, content: bytes, options: dict[str, bool], figure):
    path.write_bytes(content)
    before = digest(path)
    assert refusal(path, **options) == f"{path}: this file is not a database\n{NAME_ANOTHER}"
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    figure(f"refused; SHA-256 {before[:8]} before, {digest(path)[:8]} after")


def test_an_empty_file_is_no_database_unless_one_is_to_be_made(path: Path):
    path.touch()
    assert refusal(path, write=True) == f"{path}: this file is empty, not a results database\n{NAME_ANOTHER}"


@pytest.mark.parametrize("options", [{"write": False}, {"write": True, "create": True}])
@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE studies (x); PRAGMA journal_mode = WAL",
        "CREATE TABLE run (x)",
        "PRAGMA application_id = 1196444487; CREATE TABLE kdx_schema (revision)",
        f"PRAGMA application_id = {APPLICATION_ID}; CREATE TABLE notes (x)",
        "PRAGMA application_id = 1196444487",
    ],
)
def test_a_database_of_another_application_is_refused_untouched(
    path: Path, made: str, options: dict[str, bool], figure
):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(made)
    before = digest(path)
    assert refusal(path, **options) == f"{path}: this database belongs to another application\n{NAME_ANOTHER}"
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]
    figure(f"refused; SHA-256 {before[:8]} before, {digest(path)[:8]} after")


@pytest.mark.parametrize(
    ("mode", "folder_mode", "write", "message"),
    [
        (0o000, 0o777, False, "no permission to read this file\n  hint: look at its owner and mode"),
        (
            0o444,
            0o777,
            True,
            f"no permission to write this file\n  hint: copy it to a file of yours, or name another with {BY}",
        ),
        (
            0o666,
            0o555,
            True,
            "no permission to write its folder, where SQLite keeps a journal while it writes\n"
            f"  hint: copy the database to a folder of yours, or name another with {BY}",
        ),
    ],
)
def test_missing_permissions_are_reported_at_once(
    common_folder, in_processes, mode, folder_mode, write, message, figure
):
    path = common_folder / "runs.db"
    open_database(path, write=True, create=True).close()
    path.chmod(mode)
    common_folder.chmod(folder_mode)
    assert in_processes(lambda: refusal(path, write=write), unprivileged=True) == [f"{path}: {message}"]
    figure(f"file {mode:03o} in a folder {folder_mode:o}: exit {DatabaseError.exit_code}, with the remedy")


def test_a_network_file_system_is_refused_for_writing_alone(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "filesystem", lambda path: "nfs4")
    before = digest(path)
    message = (
        "it lies on a network file system (nfs4), whose locks cannot be trusted with a database\n"
        f"  hint: name a file on a local disk with {BY}, and copy it here with kdx db backup; "
        "KDX_ALLOW_NETWORK=1 if you know that the locks hold"
    )
    assert refusal(path, write=True) == f"{path}: {message}"
    fresh = path.with_name("fresh.db")
    assert refusal(fresh, write=True, create=True) == f"{fresh}: {message}"
    assert not fresh.exists() and digest(path) == before
    with open_database(path, write=False) as reader:
        reader.back_up(fresh)
    monkeypatch.setenv("KDX_ALLOW_NETWORK", "1")
    with open_database(path, write=True) as allowed:
        add_cell(allowed)


GONE = (
    "the database was deleted or replaced while it was open\n"
    "  hint: nothing was written to what is there now; put the right file back, then kdx resume"
)


def test_a_database_that_is_deleted_while_open_is_not_made_anew(database: Database, path: Path):
    add_cell(database)
    path.unlink()
    with pytest.raises(DatabaseError) as caught:
        add_cell(database)
    assert str(caught.value) == f"{path}: {GONE}"
    assert not path.exists()


def test_a_database_that_is_deleted_before_the_first_write_of_a_transaction_is_not_made_anew(
    database: Database, path: Path
):
    add_cell(database)
    event.listen(database._engine, "begin", lambda _: path.unlink())
    with pytest.raises(DatabaseError) as caught:
        add_cell(database, "d" * 32)
    assert str(caught.value) == f"{path}: {GONE}"
    assert not path.exists()


def test_a_database_that_is_replaced_while_open_is_not_written(database: Database, path: Path, figure):
    path.rename(path.with_name("aside.db"))
    open_database(path, write=True, create=True).close()
    before = digest(path)
    with pytest.raises(DatabaseError) as caught:
        add_cell(database)
    assert str(caught.value) == f"{path}: {GONE}"
    assert digest(path) == before
    figure(f"exit {caught.value.exit_code}; SHA-256 of the other {before[:8]} before, {digest(path)[:8]} after")
    path.with_name("aside.db").replace(path)
    add_cell(database)
    assert cells(database) == [CELL]


def test_another_database_in_the_same_inode_is_not_written(database: Database, path: Path, tmp_path: Path, figure):
    """As `cp other.db runs.db` does it."""
    add_cell(database)
    with open_database(tmp_path / "other.db", write=True, create=True):
        pass
    path.write_bytes((tmp_path / "other.db").read_bytes())
    before = digest(path)
    with pytest.raises(DatabaseError, match="deleted or replaced while it was open"):
        add_cell(database, "d" * 32)
    with pytest.raises(DatabaseError, match="deleted or replaced while it was open"):
        cells(database)
    assert digest(path) == before
    figure("another database copied over one that is open: 0 bytes of it written")


def test_a_link_leads_to_the_same_database(database: Database, path: Path, tmp_path: Path):
    add_cell(database)
    (tmp_path / "link.db").symlink_to(path)
    with open_database(tmp_path / "link.db", write=True) as other:
        assert other.id == database.id
        add_cell(other, "d" * 32)
    assert len(cells(database)) == 2


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
def test_the_deepest_and_last_mount_tells_the_kind(tmp_path: Path, path: str, kind: str):
    (tmp_path / "link").symlink_to(path)
    assert filesystem(Path(path), MOUNTS) == filesystem(tmp_path / "link", MOUNTS) == kind
    assert filesystem(Path(path), "") is None


def test_this_machine_is_asked():
    assert filesystem(Path("/proc/self/status")) == "proc"
    assert "proc" not in NETWORK
