"""`kdx db merge` joins databases, says what came and what contradicts, and where files of runs lie."""

import json
from pathlib import Path

import pytest
from looked_after import DB, checkpoints, completed, names, planned, refused, states, typed

from kdx.run_files.files import files_beside, final_weights
from kdx.store.database import open_database
from kdx.store.reading import runs


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cluster(name: str, *scores: float | None, seeds: int = 2) -> None:
    """A database of this name, whose runs were completed with these scores, or wait."""
    found = planned(seeds)
    for run, score in zip(found, scores, strict=False):
        if score is not None:
            completed(run, score)
    Path("runs.db").rename(f"{name}.db")
    if Path("runs.files").exists():
        Path("runs.files").rename(f"{name}.files")


def test_two_clusters_become_one():
    cluster("a", 1.0, None)
    cluster("b", None, 2.0)
    done = typed("db", "merge", "a.db", "b.db", "runs.db")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "runs.db: 2 runs and 1 sweep came, 0 took the place of a run that waited here, 2 brought nothing new",
        "weights of 1 run lie beside a.db; the same command copies them with --with-files",
        "weights of 1 run lie beside b.db; the same command copies them with --with-files",
    ]
    assert states() == ["completed", "completed"]
    assert typed("report", "tiny").exit_code == 0
    again = typed("db", "merge", "a.db", "b.db", "runs.db")
    assert "nothing was changed" in again.stderr.splitlines()


def test_weights_that_lie_elsewhere_are_not_taken_for_lost_nor_removed():
    cluster("a", 1.0, 2.0)
    typed("db", "merge", "a.db", "runs.db")
    assert typed("doctor").stderr == "nothing is wrong\n"
    assert [one.name for one in Path("runs.files").glob("*/*")] == ["weights-elsewhere.txt"] * 2
    typed("gc", "--keep", "selected", "--apply")
    assert len(list(Path("runs.files").glob("*/*"))) == 2
    assert len(list(Path("a.files").glob("*/best*"))) == 2


def test_files_are_copied_on_request_and_once():
    cluster("a", 1.0, None)
    cluster("b", None, 2.0)
    done = typed("db", "merge", "a.db", "b.db", "runs.db", "--with-files")
    assert "copied 2 files of runs, " in done.stderr
    assert "beside" not in done.stderr
    with open_database(DB, write=False) as database:
        for run in runs(database, 1):
            assert final_weights(files_beside(DB), run) is not None
    assert typed("doctor").exit_code == 0
    assert "copied 0 files of runs, 0 bytes" in typed("db", "merge", "a.db", "b.db", "runs.db", "--with-files").stderr


def test_files_may_come_later():
    cluster("a", 1.0, 2.0)
    typed("db", "merge", "a.db", "runs.db")
    assert "copied 2 files of runs" in typed("db", "merge", "a.db", "runs.db", "--with-files").stderr
    assert typed("doctor").exit_code == 0


def test_a_damaged_file_is_not_copied():
    cluster("a", 1.0)
    (file,) = Path("a.files").glob("*/best*")
    file.write_bytes(b"other")
    error = refused("db", "merge", "a.db", "runs.db", "--with-files")
    assert (error.exit_code, error.problem) == (74, "this file does not match its checksum")
    assert not list(Path("runs.files").glob("*/best*"))


def test_checkpoints_come_with_the_runs_that_go_on_from_them():
    (run,) = planned(1)
    checkpoints(run).write("step", 5, {"anything": 1})
    with open_database(DB, write=True) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'interrupted', progress_step = 5, checkpoint_step = 5")
    Path("runs.db").rename("a.db")
    Path("runs.files").rename("a.files")
    planned(1)
    done = typed("db", "merge", "a.db", "runs.db")
    line = "checkpoints that 1 run would go on from lie beside a.db; the same command copies them with --with-files"
    assert line in done.stderr.splitlines()
    Path("runs.db").unlink()
    typed("db", "merge", "a.db", "runs.db", "--with-files")
    with open_database(DB, write=False) as database:
        (run,) = runs(database, 1)
    assert names(run) == ["step.ckpt"]


def test_a_conflict_is_listed_with_both_sides_and_exit_code_5():
    cluster("a", 1.0, None)
    cluster("b", 2.0, None)
    with open_database("a.db", write=False) as database:
        run = runs(database, 1)[0]
    done = typed("db", "merge", "b.db", "a.db")
    assert done.exit_code == 5
    assert done.stdout.splitlines() == [
        f"cell {run.cell_id}, seed 0, generation 0: other valid_score, other test_score",
        "  here: a.db run 1: state completed, valid_score 1.0, test_score 1.0, attempts 1, owner me",
        "  there: b.db run 1: state completed, valid_score 2.0, test_score 2.0, attempts 1, owner me",
    ]
    assert done.stderr.splitlines()[-1] == (
        "1 conflict, in which what was here stands; --as-generation takes such runs as further generations"
    )
    told = json.loads(typed("db", "merge", "b.db", "a.db", "--json").stdout)
    assert [one["kind"] for one in told["conflicts"]] == ["run"]
    assert (told["rows"], told["done"]) == ({}, True)


def test_the_other_results_come_as_a_generation_that_tables_leave_out():
    cluster("a", 1.0, None)
    cluster("b", 2.0, None)
    report = typed("report", "tiny", "--db", "a.db").stdout
    done = typed("db", "merge", "b.db", "a.db", "--as-generation", "--with-files")
    assert done.exit_code == 0
    assert "1 of them as further generations, out of tables; kdx invalidate RUN --undo puts one in" in done.stderr
    assert typed("report", "tiny", "--db", "a.db").stdout.count("1.00") == report.count("1.00") > 0
    with open_database("a.db", write=False) as database, database.read() as connection:
        rows = connection.exec_driver_sql("SELECT generation FROM run WHERE seed = 0 ORDER BY 1").fetchall()
    assert [tuple(row) for row in rows] == [(0,), (1,)]
    assert len(list(Path("a.files").glob("*-0-1/best*"))) == 1


def test_a_dry_run_makes_nothing():
    cluster("a", 1.0, 2.0)
    done = typed("db", "merge", "a.db", "runs.db", "--dry-run")
    assert done.stderr == (
        "runs.db: 2 runs and 1 sweep would come, 0 would take the place of a run that waited here, "
        "0 brought nothing new\n"
    )
    assert not Path("runs.db").exists() and not Path("runs.files").exists()
    assert json.loads(typed("db", "merge", "a.db", "runs.db", "--dry-run", "--json").stdout)["runs"]["came"] == 2


def test_bad_input_is_refused():
    cluster("a", 1.0)
    assert refused("db", "merge", "a.db").problem == "a merge takes two databases or more"
    assert refused("db", "merge", "absent.db", "a.db").exit_code == 3
    assert refused("db", "merge", "a.db", "a.db").problem == "this is one database under both names"
    Path("text.db").write_text(
        "no database at all, but a text that is long enough to have a header of some kind, or so"
    )
    assert refused("db", "merge", "text.db", "a.db").exit_code == 3
    assert refused("db", "merge", "a.db", "text.db").exit_code == 3


def test_files_of_another_database_are_not_taken(folder):
    cluster("a", 1.0)
    (folder / "a.files" / "database.json").write_text(
        json.dumps({"id": "f" * 32, "path": "/elsewhere/x.db", "files": "/elsewhere"})
    )
    error = refused("db", "merge", "a.db", "runs.db", "--with-files")
    assert error.problem == "these are the files of another database, which was at /elsewhere/x.db"
