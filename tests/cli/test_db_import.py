"""`kdx db import` puts others' results into a database, lists what contradicts, and says where files of runs lie."""

import json
from pathlib import Path

import pytest
from looked_after import DB, completed, planned, refused, states, typed

from kdx.run_files.files import files_beside, final_weights
from kdx.run_files.folder_ownership import NOTE
from kdx.store.database import open_database
from kdx.store.reading import runs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cluster(name: str, *scores: float | None) -> None:
    """A database of this name, whose runs were completed with these scores, or wait."""
    for run, score in zip(planned(2), scores, strict=False):
        if score is not None:
            completed(run, score)
    Path("runs.db").rename(f"{name}.db")
    if Path("runs.files").exists():
        Path("runs.files").rename(f"{name}.files")


def test_two_clusters_become_one():
    cluster("a", 1.0, None)
    cluster("b", None, 2.0)
    done = typed("db", "import", "a.db", "b.db")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "a.db: 1 run and 1 sweep came, 0 were the same in both",
        "a.db: the weights of 1 run are beside it; the same command copies them with --with-files",
        "b.db: 1 run and 0 sweeps came, 0 were the same in both",
        "b.db: the weights of 1 run are beside it; the same command copies them with --with-files",
        "read runs.db with: kdx report",
    ]
    assert states() == ["completed", "completed"]
    assert typed("report", "tiny").exit_code == 0
    assert "a.db: 0 runs and 0 sweeps came, 1 were the same in both" in typed("db", "import", "a.db").stderr


def test_weights_that_lie_elsewhere_are_not_taken_for_lost_nor_removed():
    cluster("a", 1.0, 2.0)
    typed("db", "import", "a.db")
    assert typed("doctor").stderr == "nothing is wrong\n"
    assert [file.name for file in Path("runs.files").glob("*/*")] == ["weights-elsewhere.txt"] * 2
    typed("gc", "--keep", "selected", "--apply")
    assert len(list(Path("runs.files").glob("*/*"))) == 2
    assert len(list(Path("a.files").glob("*/best*"))) == 2


def test_files_are_copied_on_request_also_later_and_once():
    cluster("a", 1.0, None)
    typed("db", "import", "a.db")
    assert "a.db: copied 1 file, " in typed("db", "import", "a.db", "--with-files").stderr
    with open_database(DB, write=False) as database:
        first, _ = runs(database, 1)
        assert final_weights(files_beside(DB), first) is not None
    assert typed("doctor").exit_code == 0
    assert "copied 0 files, 0 bytes" in typed("db", "import", "a.db", "--with-files").stderr


def test_a_damaged_file_is_not_copied():
    cluster("a", 1.0)
    (file,) = Path("a.files").glob("*/best*")
    file.write_bytes(b"other")
    error = refused("db", "import", "a.db", "--with-files")
    assert (error.exit_code, error.problem) == (74, "this file does not match its checksum")
    assert not list(Path("runs.files").glob("*/best*"))


def test_a_conflict_is_listed_with_both_sides_and_exit_code_5():
    cluster("a", 1.0, None)
    cluster("b", 2.0, None)
    with open_database("a.db", write=False) as database:
        run = runs(database, 1)[0]
    done = typed("db", "import", "b.db", "--db", "a.db")
    assert done.exit_code == 5
    assert done.stdout.splitlines() == [
        f"b.db: run {run.cell_id[:8]}, seed 0, generation 0: "
        "valid_score 1.0 here, 2.0 there, test_score 1.0 here, 2.0 there",
    ]
    assert done.stderr.splitlines()[-1] == "b.db: 1 conflict: what was here stands, and nothing of them came"
    (found,) = json.loads(typed("db", "import", "b.db", "--db", "a.db", "--json").stdout)
    assert (len(found["conflicts"]), found["rows"]) == (1, {})


def test_bad_input_is_refused():
    cluster("a", 1.0)
    assert refused("db", "import", "absent.db").exit_code == 3
    assert refused("db", "import", "a.db", "--db", "a.db").problem == "this is one database under both names"
    text = "no database at all, but a text that is long enough to have a header of some kind, or so"
    Path("text.db").write_text(text)
    assert refused("db", "import", "text.db", "--db", "a.db").exit_code == 3
    assert refused("db", "import", "a.db", "--db", "text.db").exit_code == 3


def test_files_of_another_database_are_not_taken(folder):
    cluster("a", 1.0)
    (folder / "a.files" / NOTE).write_text("f" * 32)
    error = refused("db", "import", "a.db", "--with-files")
    assert error.problem == "these are the files of another database"
