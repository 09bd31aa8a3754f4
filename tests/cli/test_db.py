"""`kdx db` checks, copies and imports databases, lists conflicts, and reports where files of runs are."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from looked_after import DB, completed, planned, refused, states, typed
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.run_files.files import files_beside, final_weights
from kdx.run_files.folder_ownership import NOTE
from kdx.store import claims
from kdx.store.database import open_database
from kdx.store.reading import runs
from kdx.store.records import RunState
from kdx.store.schema import metadata


def test_a_sound_database_is_counted():
    planned(2)
    done = typed("db", "check")
    assert (done.exit_code, done.stderr) == (
        0,
        "runs.db: nothing is wrong; copy it with: kdx db backup FILE\n",
    )
    counts = {table: int(rows) for rows, table in map(str.split, done.stdout.splitlines())}
    assert counts.keys() == metadata.tables.keys()
    assert {table: rows for table, rows in counts.items() if rows} == {
        "cell": 1,
        "identity": 1,
        "plan": 1,
        "plan_cell": 1,
        "run": 2,
        "sweep": 1,
        "sweep_cell": 1,
        "sweep_run": 2,
    }


def test_what_is_wrong_is_told_with_exit_code_5():
    planned(2)
    with closing(sqlite3.connect(DB, isolation_level=None)) as connection:
        connection.execute("DELETE FROM cell")
    done = typed("db", "check")
    assert done.exit_code == 5
    assert sorted(done.stdout.splitlines()) == [
        "wrong: 1 rows of plan_cell name a row of cell that is not there",
        "wrong: 1 rows of sweep_cell name a row of cell that is not there",
        "wrong: 2 rows of run name a row of cell that is not there",
        "wrong: 2 rows of sweep_run name a row of cell that is not there",
    ]
    assert done.stderr == ("runs.db: 4 found; restore a backup, or save what is left: sqlite3 FILE .recover\n")
    assert len(json.loads(typed("db", "check", "--json").stdout)["faults"]) == 4


def test_a_copy_has_the_results_and_is_made_once(folder):
    completed(planned(1)[0])
    done = typed("db", "backup", "copies of mine.db")
    assert done.stdout == "copies of mine.db\n"
    assert done.stderr.startswith("copied runs.db, ")
    assert done.stderr.endswith("; read it with: kdx report --db 'copies of mine.db'\n")
    assert refused("db", "backup", "copies of mine.db").exit_code == 2
    assert refused("db", "backup", "runs.db").exit_code == 2
    assert refused("db", "backup", "absent/copy.db").exit_code == 3
    Path("copies of mine.db").replace(DB)
    assert states() == ["completed"]


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
        "a.db: 1 run and 1 sweep came; already here: 0 runs",
        "a.db: without results there, so pending here: 1 run (1 pending)",
        "a.db: the weights of 1 run are beside it; the same command copies them with --with-files",
        "b.db: 1 run and 0 sweeps came; already here: 0 runs",
        "b.db: the weights of 1 run are beside it; the same command copies them with --with-files",
        "read runs.db with: kdx report",
    ]
    assert states() == ["completed", "completed"]
    assert typed("report", "tiny").exit_code == 0
    assert "a.db: 0 runs and 0 sweeps came; already here: 1 run" in typed("db", "import", "a.db").stderr


def test_what_did_not_finish_there_is_counted_as_pending_here():
    cluster("a", 1.0, None)
    with open_database("a.db", write=True) as database:
        claims.cancel(database, [run.id for run in runs(database, 1) if run.state is RunState.PENDING])
    assert "a.db: without results there, so pending here: 1 run (1 cancelled)" in typed("db", "import", "a.db").stderr
    assert states() == ["completed", "pending"]


def test_what_came_before_an_error_is_reported():
    cluster("a", 1.0)
    done = CliRunner().invoke(app, ["db", "import", "a.db", "absent.db", "--json"])
    assert isinstance(done.exception, KdxError) and "absent.db" in str(done.exception)
    (came,) = json.loads(done.stdout)
    assert came["runs"] == 1


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
    assert done.stderr.splitlines()[-1] == "b.db: 1 conflict: what is here stays, and nothing of it came from there"
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
