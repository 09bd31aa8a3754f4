"""Files of imported runs are copied, or word is left where they lie."""

from dataclasses import replace
from pathlib import Path

import pytest

from kdx.run_files.files import ELSEWHERE, Kind, files_beside, listing_of
from kdx.run_files.folder_ownership import owner_of
from kdx.run_files.imported import bring
from kdx.store.database import Database, open_database
from kdx.store.importing import Folder
from kdx.store.records import RunState
from kdx.training.checkpoint import CheckpointFiles

NAME = f"{'a' * 32}-0-0"


@pytest.fixture
def database(tmp_path):
    with open_database(tmp_path / "all.db", write=True, create=True) as opened:
        yield opened


def wrote(tmp_path: Path, kind: str) -> str:
    """A file of the run beside the source; its hash."""
    CheckpointFiles(tmp_path / "a.files" / NAME).write(kind, 5, {"anything": 1})
    found = listing_of(tmp_path / "a.files", NAME)
    return next(each.sha256 for each in found if each.name.startswith(kind) and each.sha256)


def run(tmp_path: Path, state: RunState = RunState.COMPLETED, weights: str | None = None) -> Folder:
    return Folder(tmp_path / "a.db", NAME, state, weights)


def kinds(database: Database) -> list[Kind]:
    return [each.kind for each in listing_of(files_beside(database.location), NAME)]


def test_weights_and_log_come(database, tmp_path):
    weights = wrote(tmp_path, "best")
    wrote(tmp_path, "step")
    (tmp_path / "a.files" / NAME / "log.txt").write_text("a log")
    (tmp_path / "a.files" / NAME / "mine.txt").write_text("not of kdx")
    folder = run(tmp_path, weights=weights)
    brought = bring(database, [folder], copy=True)
    assert (brought.files, brought.elsewhere) == (2, ())
    assert sorted(kinds(database)) == [Kind.LOG, Kind.WEIGHTS]
    assert (tmp_path / "all.files" / NAME / "log.txt").read_text() == "a log"
    assert owner_of(tmp_path / "all.files") == database.id
    assert bring(database, [folder], copy=True).files == 0


def test_other_weights_of_that_name_do_not_come(database, tmp_path):
    wrote(tmp_path, "best")
    brought = bring(database, [run(tmp_path, weights="0" * 64)], copy=True)
    assert (brought.files, brought.elsewhere) == (0, ())


def test_without_copying_word_is_left_once(database, tmp_path):
    weights = wrote(tmp_path, "best")
    folder = run(tmp_path, weights=weights)
    for _ in range(2):
        assert bring(database, [folder], copy=False).elsewhere == (folder,)
    note = tmp_path / "all.files" / NAME / ELSEWHERE
    assert note.read_text() == f"This run was imported from {folder.source}, beside which its weights lay: {NAME}\n"
    assert kinds(database) == [Kind.NOTE]


def test_a_run_whose_weights_are_nowhere_has_lost_none_here(database, tmp_path):
    assert bring(database, [run(tmp_path, weights="0" * 64)], copy=True).elsewhere == ()
    note = (tmp_path / "all.files" / NAME / ELSEWHERE).read_text()
    assert note.endswith(f"a.db, beside which its weights were not: {NAME}\n")


def test_a_run_that_was_here_already_may_have_lost_its_weights(database, tmp_path):
    bring(database, [replace(run(tmp_path, weights="0" * 64), came=False)], copy=False)
    assert not (tmp_path / "all.files").exists()


@pytest.mark.parametrize("copy", [True, False])
def test_the_log_of_an_attempt_that_is_replaced_goes_with_it(database, tmp_path, copy):
    weights = wrote(tmp_path, "best")
    (tmp_path / "a.files" / NAME / "log.txt").write_text("there")
    log = tmp_path / "all.files" / NAME / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("here")
    folder = replace(run(tmp_path, weights=weights), replaces=True)
    bring(database, [folder], copy=copy)
    assert log.exists() == copy
    assert not copy or log.read_text() == "there"


def test_what_nobody_needs_leaves_no_folder(database, tmp_path):
    brought = bring(database, [run(tmp_path, RunState.DIVERGED)], copy=False)
    assert (brought.files, brought.elsewhere) == (0, ())
    assert not (tmp_path / "all.files").exists()


def test_a_link_is_not_followed(database, tmp_path):
    weights = wrote(tmp_path, "best")
    folder = tmp_path / "a.files" / NAME
    (file,) = folder.iterdir()
    file.rename(tmp_path / "secret")
    file.symlink_to(tmp_path / "secret")
    assert bring(database, [run(tmp_path, weights=weights)], copy=True).files == 0
