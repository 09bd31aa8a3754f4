"""`kdx doctor` finds what is wrong, repairs what can be repaired, and deletes no result."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from looked_after import DB, checkpoints, claimed, completed, names, planned, refused, states, typed

from kdx.cli import doctor as module
from kdx.errors import KdxError
from kdx.run_files.files import files_beside
from kdx.run_files.folder_ownership import take
from kdx.run_files.load_run import load_run
from kdx.store import claims, recording
from kdx.store.database import open_database
from kdx.sweep.lease_holder import lease_holder
from kdx.training.checkpoint import name_of


@pytest.fixture(scope="module")
def gone() -> str:
    """A process that has ended."""
    script = "from kdx.sweep.lease_holder import lease_holder; print(lease_holder())"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def wrong(*words: str) -> list[str]:
    """What is told to be wrong, without the names of files."""
    return [
        line for line in typed("doctor", *words).stdout.splitlines() if line.startswith(("wrong", "repaired", "  "))
    ]


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_when_nothing_is_wrong_it_says_what_there_is():
    completed(planned(2)[0])
    done = typed("doctor")
    assert (done.exit_code, done.stderr) == (0, "nothing is wrong\n")
    shown = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(shown) == ["versions", "database", "runs", "files", "disk"]
    assert "torch 2." in shown["versions"] and f"sqlite {sqlite3.sqlite_version}" in shown["versions"]
    assert shown["runs"] == "1 completed, 1 pending"
    assert shown["files"].startswith("1 in runs.files, ")
    assert shown["disk"].endswith(" free")


def test_a_run_whose_process_is_gone_is_given_back(gone):
    dead, alive = planned(2)
    claimed(dead, gone)
    claimed(alive, lease_holder())
    before = DB.read_bytes()
    done = typed("doctor")
    assert (done.exit_code, done.stderr) == (5, "1 found; next: kdx doctor --fix\n")
    place = f"run 1 ({dead.cell_id[:8]}, seed 0): running, but its process is gone"
    assert wrong() == [f"wrong: {place}", "  --fix: give the run back, so that kdx resume continues it"]
    assert DB.read_bytes() == before

    done = typed("doctor", "--fix")
    assert (done.exit_code, done.stderr) == (0, "1 found, 1 repaired; next: kdx resume\n")
    assert f"repaired: {place}" in done.stdout
    assert states() == ["interrupted", "running"]
    assert typed("doctor").exit_code == 0


def test_a_run_that_shows_life_between_finding_and_mending_is_left_alone(monkeypatch):
    (run,) = planned(1)
    claimed(run, "somebody/elsewhere", -5.0)
    repair = module._repair

    def late(db, found):
        with open_database(DB, write=True) as database:
            claims.renew(database, "somebody/elsewhere", 60.0)
        return repair(db, found)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_repair", late)
        done = typed("doctor", "--fix")
    assert (done.exit_code, done.stderr) == (5, "1 found; next: kdx doctor --fix\n")
    assert states() == ["running"]
    assert typed("doctor").exit_code == 0


def test_a_run_that_ends_while_files_are_read_is_no_fault(gone, monkeypatch):
    (run,) = planned(1)
    claimed(run, gone)

    def ends_meanwhile(files, listed):
        with open_database(DB, write=True) as database:
            claims.abandon(database, 1, gone, 1, "lost")
        return frozenset()

    monkeypatch.setattr(module, "damaged", ends_meanwhile)
    assert typed("doctor").exit_code == 0


def test_damaged_and_half_written_files_are_repaired_and_weights_are_missed():
    best, stopped = planned(2)
    completed(best)
    (weights,) = checkpoints(best).folder.iterdir()
    first = checkpoints(stopped).write("step", 5, {})
    second = checkpoints(stopped).write("step", 6, {})
    damage(second)
    (second.parent / f".kdx-{'7' * 16}").touch()
    assert typed("doctor", "--fix").exit_code == 0
    assert names(stopped) == ["step.ckpt", "step.corrupt"] and first.exists()

    damage(weights)
    done = typed("doctor", "--fix")
    assert (done.exit_code, done.stderr) == (5, "2 found, 1 repaired; kdx cannot repair the rest\n")
    assert names(best) == ["best.corrupt"]
    assert states() == ["completed", "pending"]
    assert wrong() == [
        f"wrong: run 1 ({best.cell_id[:8]}, seed 0): completed, but its weights are not there",
        f"  kdx retry {best.id} makes them anew",
    ]
    assert "2 set aside as damaged, see kdx gc" in typed("doctor").stdout


def test_what_a_live_process_writes_is_left_alone():
    (run,) = planned(1)
    claimed(run, lease_holder())
    damage(checkpoints(run).write("step", 5, {}))
    (checkpoints(run).folder / f".kdx-{'7' * 16}").touch()
    assert typed("doctor", "--fix").exit_code == 0
    assert names(run) == [f".kdx-{'7' * 16}.", "step.ckpt"]


def test_a_file_that_is_taken_up_between_finding_and_mending_is_left_alone(monkeypatch):
    (run,) = planned(1)
    damage(checkpoints(run).write("step", 5, {}))
    repair = module._repair

    def late(db, found):
        claimed(run, lease_holder())
        return repair(db, found)

    monkeypatch.setattr(module, "_repair", late)
    assert typed("doctor", "--fix").exit_code == 5
    assert names(run) == ["step.ckpt"]


@pytest.mark.parametrize("size", [40_000, 80_000])
def test_a_damaged_database_is_found_and_nothing_is_concluded_from_it(size):
    (run,) = planned(1)
    damage(checkpoints(run).write("step", 5, {}))
    content = DB.read_bytes()
    DB.write_bytes(content[:-size] + b"\xff" * size)
    done = typed("doctor", "--fix")
    assert done.exit_code == 5
    assert "damaged" in done.stdout and ".recover" in done.stdout
    assert names(run) == ["step.ckpt"]
    assert typed("db", "check").exit_code == 5


def test_a_disk_that_is_nearly_full_is_told(monkeypatch):
    planned(1)
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 50_000_000, 50_000_000))
    assert wrong() == [
        "wrong: runs.files: 50.0 MB are free on its disk; a sweep wants 100.0 MB",
        "  free some space, with kdx gc for one",
    ]
    assert typed("doctor", "--fix").stderr == "1 found; kdx cannot repair it\n"


def test_results_that_were_passed_on_alone_are_well(folder):
    completed(planned(1)[0])
    shutil.rmtree(files_beside(DB))
    (folder / "inbox").mkdir()
    passed_on = shutil.copy(DB, folder / "inbox" / "theirs.db")
    passed_on.chmod(0o444)
    done = typed("doctor", "--db", str(passed_on))
    assert done.exit_code == 0
    assert [path.name for path in passed_on.parent.iterdir()] == ["theirs.db"]


def test_programs_get_json(gone):
    claimed(planned(1)[0], gone)
    shown = json.loads(typed("doctor", "--json").stdout)
    assert set(shown) == {"versions", "database", "files", "disk", "findings"}
    (found,) = shown["findings"]
    assert (found["problem"], found["repair"], found["repaired"]) == (
        "running, but its process is gone",
        "give_back",
        False,
    )
    (found,) = json.loads(typed("doctor", "--json", "--fix").stdout)["findings"]
    assert found["repaired"] is True


def test_without_a_database_there_is_nothing_to_look_at():
    assert refused("doctor").exit_code == 3
    Path("other.db").write_text("kernel: rbf\n" * 100)
    assert refused("doctor", "--db", "other.db").exit_code == 3


def finished(runs) -> None:
    """Completed, with weights whose hash the database has."""
    for run in runs:
        claimed(run)
        path = checkpoints(run).write("best", 10, {"seed": run.seed})
        with open_database(DB, write=True) as database:
            hand = recording.RunWriter(database, run.id, "me", 1)
            hand.complete(1.0, 10, 1.0, {}, 10, weights_sha256=name_of(path).sha256)
    with open_database(DB, write=True) as database:
        take(database)


def test_weights_of_another_run_are_found_set_aside_and_handed_out_by_nobody(figure):
    first, second = planned(2)
    finished([first, second])
    (of_first,), (of_second,) = checkpoints(first).folder.iterdir(), checkpoints(second).folder.iterdir()
    of_first.rename(of_second.parent / of_first.name), of_second.rename(of_first.parent / of_second.name)
    assert refused("export", "--weights", "--to", "out").problem == "runs without weights: 1"
    with pytest.raises(KdxError, match="run 1, which is completed, has no weights that were tested"):
        load_run(DB, 1)
    done = typed("doctor")
    assert done.exit_code == 5
    assert done.stdout.count("are not the weights that this run was tested with") == 2
    assert typed("doctor", "--fix").exit_code == 5  # they are still lost
    assert names(first) == names(second) == ["best.corrupt"]
    figure("two runs' weights swapped: doctor exit 5, export exit 2, load_run refused")


def test_a_folder_of_files_that_is_gone_is_one_finding(figure):
    first, second, stopped = planned(3)
    finished([first, second])
    claimed(stopped)
    checkpoints(stopped).write("step", 5, {})
    with open_database(DB, write=True) as database:
        hand = recording.RunWriter(database, stopped.id, "me", 1)
        hand.checkpoint(5)
        hand.interrupt(5)
    assert typed("doctor").exit_code == 0
    shutil.rmtree(checkpoints(stopped).folder)
    assert wrong() == [
        f"wrong: run 3 ({stopped.cell_id[:8]}, seed 2): interrupted at step 5, but it has no checkpoint left",
        "  put its files back; otherwise kdx resume starts it again from step 0",
    ]
    shutil.rmtree(files_beside(DB))
    shown, hint = wrong()
    assert shown == "wrong: the folder of run files: is gone, with the weights of 2 runs and the checkpoints of 1"
    assert "kdx retry RUN" in hint
    figure(f"runs.files gone: {shown}")


def test_files_of_another_database_are_found_and_used_by_nobody():
    finished(planned(1))
    DB.rename("first.db")
    finished_before = files_beside(DB)
    planned(1)
    assert wrong()[0].endswith("these are the files of another database")
    for words in (["gc", "--unknown", "--apply"], ["export", "--weights", "--to", "out"]):
        assert "these are the files of another database" in refused(*words).problem
    assert any(finished_before.glob("*/best-*"))


def test_of_a_database_that_is_not_sound_no_run_is_judged():
    planned(1)
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE run SET generation = -1")
    done = typed("doctor")
    assert done.exit_code == 5
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith(("runs ", "files "))] == [
        "unchecked, since the database is not sound"
    ] * 2
    assert wrong()[0] == "wrong: runs.db: SQLite finds: CHECK constraint failed in run"
    assert json.loads(typed("doctor", "--json").stdout)["database"]["sound"] is False
