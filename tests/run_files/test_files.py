"""The files of runs are known by their names, and nothing else is touched."""

from pathlib import Path

import pytest
from inventories import NAMES, run

from kdx.errors import StorageError
from kdx.run_files.files import (
    Kind,
    RunFile,
    content,
    damaged,
    files_beside,
    final_weights,
    folder_of,
    listing,
    remove,
    resume_step,
    set_aside,
)
from kdx.training.checkpoint import CheckpointFiles

KINDS = [Kind.CHECKPOINT, Kind.CHECKPOINT, Kind.WEIGHTS, Kind.WEIGHTS, Kind.SET_ASIDE]
KINDS += [Kind.HALF_WRITTEN, Kind.LOG, Kind.NOTE, Kind.OTHER]


@pytest.fixture
def files(tmp_path):
    return files_beside(tmp_path / "runs.db")


@pytest.fixture
def folder(files):
    """Of a run, in which training has written a checkpoint to go on from and the best weights."""
    folder = files / folder_of(run(1))
    checkpoints = CheckpointFiles(folder)
    checkpoints.write("step", 120, {"step": 120})
    checkpoints.write("best", 100, {"step": 100})
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *zip(NAMES, KINDS, strict=True),
        ("best-000000100.ckpt", Kind.OTHER),
        ("x.corrupt", Kind.OTHER),
        ("log.txt.old", Kind.OTHER),
    ],
)
def test_a_file_is_known_by_its_name(name, kind):
    assert RunFile("folder", name, 1).kind is kind


def test_the_weights_that_were_tested_are_found_and_read(files, folder):
    found = final_weights(files, run(1))
    assert found is not None and found.name.startswith("best-")
    assert b"".join(content(files, found)) == (folder / found.name).read_bytes()
    assert final_weights(files, run(2)) is None


def test_damaged_weights_are_told_at_their_end_and_left_as_they_are(files, folder):
    found = final_weights(files, run(1))
    (folder / found.name).write_bytes(b"other")
    parts = content(files, found)
    assert next(parts) == b"other"
    with pytest.raises(StorageError, match="this file does not match its checksum"):
        next(parts)
    assert (folder / found.name).exists()
    (folder / found.name).unlink()
    with pytest.raises(StorageError, match="this file cannot be read: No such file or directory"):
        list(content(files, found))


def test_what_training_writes_is_listed_and_whole(files, folder):
    listed = listing(files)
    assert [(file.folder, file.kind) for file in listed] == [
        (folder.name, Kind.WEIGHTS),
        (folder.name, Kind.CHECKPOINT),
    ]
    assert [file.size for file in listed] == [(folder / file.name).stat().st_size for file in listed]
    assert damaged(files, listed) == frozenset()


def test_a_flipped_bit_a_cut_and_an_empty_file_are_found(files, folder):
    listed = listing(files)
    path = folder / listed[0].name
    content = path.read_bytes()
    for spoilt in (content[:-1], b"", content[:50] + bytes([content[50] ^ 1]) + content[51:]):
        path.write_bytes(spoilt)
        assert damaged(files, listed) == {listed[0]}
    path.unlink()
    assert damaged(files, listed) == frozenset()


def test_what_is_set_aside_is_read_no_more_and_kept(files, folder):
    (weights, _) = listing(files)
    set_aside(files, weights)
    assert CheckpointFiles(folder).newest_first("best") == []
    assert [file.kind for file in listing(files)] == [Kind.SET_ASIDE, Kind.CHECKPOINT]


def test_the_last_file_takes_the_folder_with_it(files, folder):
    for file in listing(files):
        remove(files, file, leave_word=False)
    assert not folder.exists() and files.exists()
    remove(files, RunFile(folder.name, "log.txt", 1), leave_word=False)  # gone already


def test_weights_that_are_removed_leave_word(files, folder):
    for file in listing(files):
        remove(files, file, leave_word=True)
    assert [file.kind for file in listing(files)] == [Kind.NOTE]


def test_only_plain_files_in_folders_of_runs_are_listed(files, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / NAMES[0]).touch()
    before = listing(files)
    (files / folder_of(run(2))).symlink_to(outside)
    (folder / NAMES[0]).symlink_to(outside / NAMES[0])
    (folder / NAMES[3]).mkdir()
    (files / "mine").mkdir()
    (files / "mine" / NAMES[0]).touch()
    (files / "notes.txt").touch()
    assert listing(files) == before


def test_without_a_folder_there_are_no_files(files):
    assert listing(files) == ()


def test_what_cannot_be_changed_is_told(files, folder):
    (folder / "log.txt").mkdir()
    with pytest.raises(StorageError, match=r"log\.txt: this file cannot be changed: Is a directory"):
        remove(files, RunFile(folder.name, "log.txt", 1), leave_word=False)
    with pytest.raises(StorageError, match="cannot be changed: No such file"):
        set_aside(files, RunFile(folder.name, "absent", 1))


def test_no_two_databases_share_a_folder():
    names = [
        "runs.db",
        "runs.sqlite",
        "runs",
        "runs.db.example",
        "runs.sqlite3",
        "runs.db.before-0002.bak",
        "runs-files",
    ]
    folders = {name: files_beside(Path("results") / name) for name in names}
    assert folders["runs.db"] == Path("results/runs.files")
    assert len(set(folders.values())) == len(names)


def test_a_run_goes_on_from_its_newest_checkpoint_that_is_not_beyond_its_rows(files, folder):
    assert [resume_step(files, run(1, progress_step=step)) for step in (119, 120, 400)] == [None, 120, 120]
    CheckpointFiles(folder).write("step", 240, {})
    CheckpointFiles(folder).write("weights", 300, {})
    assert [resume_step(files, run(1, progress_step=step)) for step in (239, 240, 400)] == [120, 240, 240]
    assert resume_step(files, run(2, progress_step=400)) is None
