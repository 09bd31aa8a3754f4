"""`kdx logs` writes a run's log, and follows it until the run ends."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from grids import TINY
from looked_after import DB, claimed, completed, planned, refused, typed
from waiting import wait_until

from kdx.cli import logs
from kdx.errors import KdxError
from kdx.run_files.files import files_beside, log_of
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord


def log(run: RunRecord) -> Path:
    path = log_of(files_beside(DB), run)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_a_log_is_written_without_what_acts_on_a_terminal():
    first, _ = planned(2)
    log(first).write_bytes(b"step 1\n\tat \x1b[31mred\xff \xe2\x80\xae\n")
    assert typed("logs", str(first.id)).stdout == "step 1\n\tat \\x1b[31mred\\xff \\u202e\n"


def test_a_long_log_and_a_sign_between_two_parts_come_whole(monkeypatch):
    monkeypatch.setattr(logs, "_PART", 3)
    (first,) = planned(1)
    log(first).write_text("äöü 1\n" * 50)
    assert typed("logs", str(first.id)).stdout == "äöü 1\n" * 50


def test_a_log_is_followed_across_attempts_until_the_run_is_over(monkeypatch):
    (first,) = planned(1)
    path = log(first)
    claimed(first)
    path.write_text("one\n")

    def interrupted():
        with open_database(DB, write=True) as database:
            RunWriter(database, first.id, "me", 1).interrupt(0)

    def resumed():
        claimed(first, owner="you")
        with path.open("a") as file:
            file.write("two\n")

    def over():
        with open_database(DB, write=True) as database:
            RunWriter(database, first.id, "you", 2).complete(1.0, 10, 1.0, {}, 10)

    # One after each look.
    events = iter([interrupted, resumed, over])
    monkeypatch.setattr(logs, "time", SimpleNamespace(sleep=lambda seconds: next(events)()))
    said = typed("logs", "-f", str(first.id))
    assert said.stdout == "one\ntwo\n"
    assert said.stderr.splitlines() == [
        f"run {first.id} is interrupted; waiting for a worker, or for: kdx resume",
        f"run {first.id} has ended: completed",
    ]


def test_a_log_that_begins_anew_is_read_from_its_beginning(tmp_path, monkeypatch):
    path = tmp_path / "log.txt"

    def written_anew() -> None:
        path.unlink()
        path.write_text("anew\n")

    events = [lambda: path.write_text("before\n"), written_anew, lambda: path.write_text("x"), lambda: None]
    monkeypatch.setattr(logs, "time", SimpleNamespace(sleep=lambda seconds: events.pop(0)()))
    assert list(logs._text(path, KdxError("missing"), lambda: not events)) == ["before\n", "anew\n", "x"]


def test_without_a_log_it_is_said_why():
    first, second, third = planned(3)
    claimed(second)
    completed(third)
    assert "has not started" in refused("logs", str(first.id)).problem
    assert refused("logs", str(first.id)).hint == f"kdx logs -f {first.id} waits for it"
    assert "runs on another machine" in refused("logs", str(second.id)).problem
    assert "its files were removed" in refused("logs", str(third.id)).problem
    assert "its files were removed" in refused("logs", "-f", str(third.id)).problem
    assert refused("logs", "99").problem == "there is no run 99"
    assert refused("logs", "tiny").problem == "`tiny` is not the number of a run"


def test_no_link_is_followed():
    (first,) = planned(1)
    Path("secret").write_text("secret\n")
    log(first).symlink_to(Path("secret").absolute())
    assert "secret" not in str(refused("logs", str(first.id)).problem)


@pytest.mark.slow
def test_a_run_writes_its_progress_and_control_c_ends_following_quietly(terminal):
    terminal.write("tiny.yaml", TINY % {"steps": 10, "seeds": 1})
    assert terminal.type("kdx sweep tiny.yaml").returncode == 0
    done = terminal.type("kdx logs 1")
    assert "step 1 of 10, loss " in done.stdout and "gradient norm" in done.stdout
    assert "step 10 of 10" in done.stdout and "valid/loss" in done.stdout and "test/loss" in done.stdout
    following = terminal.start("logs", "-f", "1")
    assert following.wait(300) == 0
    with open_database(terminal.folder / "runs.db", write=True) as database, database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO run (cell_id, seed, generation, state, attempt, progress_step, stalls) "
            "SELECT cell_id, 99, 0, 'pending', 0, 0, 0 FROM run LIMIT 1"
        )
    waiting = terminal.start("logs", "-f", "2")
    wait_until(lambda: "is pending" in terminal.messages())
    os.kill(waiting.pid, signal.SIGINT)
    assert waiting.wait(300) == 130 and "Traceback" not in terminal.messages()
