"""A checkpoint file is whole, or it is not used."""

import errno
import hashlib
import io
import os
import random
from pathlib import Path

import pytest
import torch

from kdx.errors import StorageError
from kdx.files import is_unfinished
from kdx.training.checkpoint import CheckpointFiles

STATE = {"weights": torch.arange(2000, dtype=torch.float32), "step": 7}


@pytest.fixture
def files(tmp_path):
    return CheckpointFiles(tmp_path / "run")


def test_any_flipped_bit_is_caught_and_the_file_set_aside(files):
    generator = random.Random(1)
    for step in range(40):
        path = files.write("step", step, STATE)
        content = bytearray(path.read_bytes())
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(content)
        assert files.read(path) is None
        assert not path.exists() and path.with_suffix(".corrupt").exists()


def test_the_newest_come_first_and_only_those_named_are_kept(files):
    paths = [files.write("step", step, STATE) for step in (5, 10, 2)]
    best = files.write("best", 5, STATE)
    assert files.newest_first("step") == [paths[1], paths[0], paths[2]]
    files.keep("step", [paths[0].name, "of another kind"])
    assert files.newest_first("step") == [paths[0]]
    files.keep("step")
    assert files.newest_first("step") == []
    assert files.newest_first("best") == [best]


def test_a_file_that_a_run_relies_on_is_whole_or_ends_its_attempt(files):
    path = files.write("weights", 5, STATE)
    assert files.is_whole(path.name) and torch.equal(files.load(path)["weights"], STATE["weights"])
    path.write_bytes(b"")
    assert not files.is_whole(path.name) and path.with_suffix(".corrupt").exists()
    assert not files.is_whole(path.name)
    with pytest.raises(StorageError, match="damaged or removed"):
        files.load(path)
    files.write("weights", 5, STATE).write_bytes(b"half")
    with pytest.raises(StorageError, match="damaged or removed"):
        files.load(path)


def test_weights_are_looked_for_in_the_folder_of_the_run_alone(files, tmp_path):
    outside = tmp_path / "precious.txt"
    outside.write_text("mine")
    files.folder.mkdir()
    assert not files.is_whole("../precious.txt") and outside.read_text() == "mine"


@pytest.mark.parametrize("code", [errno.EIO, errno.EBADMSG, errno.EUCLEAN], ids=errno.errorcode.get)
def test_a_file_that_the_disk_does_not_give_back_is_set_aside(files, monkeypatch, code, figure):
    path = files.write("step", 7, STATE)

    def fails(path, mode):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "open", fails)
    assert files.read(path) is None and path.with_suffix(".corrupt").exists()
    figure(f"{os.strerror(code)}: set aside")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EMFILE], ids=errno.errorcode.get)
def test_a_file_that_this_process_may_not_open_now_is_left_where_it_is(files, monkeypatch, code):
    path = files.write("step", 7, STATE)

    def fails(path, mode):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(OSError, match=os.strerror(code)):
        files.read(path)
    assert path.exists()


def test_a_damaged_file_that_cannot_be_set_aside_is_told_with_its_remedy(files, monkeypatch, figure):
    path = files.write("step", 7, STATE)
    path.write_bytes(b"half")

    def fails(path, target):
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), str(path), str(target))

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(StorageError) as told:
        files.read(path)
    assert told.value.place == str(path)
    assert told.value.problem == "this checkpoint was damaged, and cannot be set aside: Read-only file system"
    assert "make its folder writable" in told.value.hint
    figure(told.value.problem)


def test_a_cut_power_finds_a_checkpoint_on_the_disk_at_any_time(files, monkeypatch):
    """Content is on the disk before it has its name, and the name is before anything older goes."""
    done, sync, rename, unlink = [], os.fsync, Path.rename, Path.unlink

    def kind(path) -> str:
        return "temporary" if is_unfinished(path.name) else "folder" if path == files.folder else path.name[:14]

    def synced(descriptor):
        sync(descriptor)
        done.append(("sync", kind(Path(f"/proc/self/fd/{descriptor}").readlink())))

    def renamed(path, target):
        done.append(("rename", kind(path), kind(target)))
        return rename(path, target)

    def unlinked(path, **how):
        done.append(("remove", kind(path)))
        unlink(path, **how)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "unlink", unlinked)
    for step in (1, 2, 3, 4):
        done.clear()
        files.save_checkpoint({"global_step": step}, files.folder)
        name = f"step-{step:09d}"
        published = [("sync", "temporary"), ("rename", "temporary", name), ("sync", "folder")]
        assert done == published + [("remove", f"step-{step - 2:09d}")] * (step > 2)


def test_what_a_killed_writer_left_is_swept(files):
    files.write("step", 1, STATE)
    (files.folder / f".kdx-{'7' * 16}").write_bytes(b"half")
    files.sweep()
    assert len(list(files.folder.iterdir())) == 1


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("planted",)


def test_a_checkpoint_cannot_run_code(files, tmp_path, monkeypatch, figure):
    monkeypatch.chdir(tmp_path)
    path = files.write("step", 1, {"x": Hostile()})
    assert files.read(path) is None
    assert path.with_suffix(".corrupt").exists()
    assert not (tmp_path / "planted").exists()
    figure(f"set aside, {len(list(tmp_path.glob('planted')))} of 1 commands in it run")


@pytest.mark.parametrize("content", [b"of another program", b"", None], ids=["text", "empty", "list"])
def test_a_whole_file_that_holds_no_state_is_set_aside(files, content):
    if content is None:
        buffer = io.BytesIO()
        torch.save([1, 2, 3], buffer)
        content = buffer.getvalue()
    files.folder.mkdir()
    path = files.folder / f"step-000000001.{hashlib.sha256(content).hexdigest()}.ckpt"
    path.write_bytes(content)
    assert files.read(path) is None
    assert path.with_suffix(".corrupt").exists()


def test_nothing_is_written_through_a_link_that_somebody_planted(files, tmp_path, monkeypatch, figure):
    path = files.write("step", 1, STATE)
    path.unlink()
    monkeypatch.setattr("secrets.token_hex", lambda count: "7" * 2 * count)
    (files.folder / f".kdx-{'7' * 16}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        files.write("step", 1, STATE)
    assert not (tmp_path / "elsewhere").exists()
    monkeypatch.undo()
    # The name itself: a link there is replaced, not followed.
    path.symlink_to(tmp_path / "elsewhere")
    files.write("step", 1, STATE)
    assert not (tmp_path / "elsewhere").exists() and files.read(path) is not None
    figure(f"2 links, {len(list(tmp_path.glob('elsewhere')))} files written elsewhere")


@pytest.mark.parametrize("links", [True, False])
def test_weights_that_a_finished_run_keeps_outlive_those_of_its_validation(files, monkeypatch, links):
    def refuse(path, target):
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = files.write("weights", 5, STATE)
    kept = files.publish_as("best", path.name)
    files.keep("weights")
    assert kept.name == path.name.replace("weights", "best") and torch.equal(
        files.load(kept)["weights"], STATE["weights"]
    )


def test_a_pipe_in_the_place_of_a_file_is_set_aside_and_waits_for_no_writer(files):
    path = files.write("weights", 5, STATE)
    path.unlink()
    os.mkfifo(path)
    assert not files.is_whole(path.name) and path.with_suffix(".corrupt").exists()
