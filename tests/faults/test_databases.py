"""A database that somebody edited or made up: nothing written elsewhere, no command without an end."""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import threading
import traceback
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from lengths import count
from typer.testing import CliRunner

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, folder_of
from kdx.store import claims, reading, recording
from kdx.store.claims import Fenced
from kdx.store.database import open_database
from kdx.store.records import RunState
from kdx.sweep import worker
from kdx.sweep.messages import STOPPED, TAKEN, Work, receive, send, trouble
from kdx.training.checkpoint import CheckpointFiles, name_of
from kdx.training.run import RunOutcome
from kdx.training.stopping import StopRequest

GRID = """
name: mine
task: prediction
data: {corpus: synthetic-language, train_lines: 300}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 20, batch_tokens: 256, length: 32, warmup: 5, validate_every: 10, record_every: 10}
axes: {kernel: [exponential, rbf]}
seeds: 4
tables: [{name: both, rows: [kernel], caption: two}]
"""
WITHIN = 300  # seconds after which a command is endless
DB = Path("runs.db")
# What is typed after an edit: of each line one, in this order.
COMMANDS = [
    [["report"], ["report", "--json"], ["report", "--statistics"], ["report", "--format", "html"]],
    [["trace", "both", "rbf"], ["trace", "both", "exponential", "--json"], ["query", "SELECT * FROM runs"]],
    [["export", "--to", "out", "--weights"], ["export", "--to", "out", "--outputs"]],
    [["doctor"], ["doctor", "--fix"], ["db", "check"], ["plan", "grid.yaml"], ["sweep", "grid.yaml"]],
    [["gc", "--apply"], ["gc", "--keep", "none", "--unplanned", "--unknown", "--apply"]],
    [["resume"], ["retry", "1"]],
    [["report"], ["doctor"]],
]
ELSEWHERE = ["../precious", "0/../../precious", "/../../precious", "../../precious/x", "%2e%2e/precious"]
JUNK: list[object] = [
    None, 0, 1, -1, 2, 7, 2**31, 2**53, 2**63 - 1, -(2**63), 0.5, -0.0, 1e300, float("inf"), -float("inf"),
    "", "0", "1", "NaN", "x" * 300, "\x1b]0;owned\a", "a\nb", "'; DROP TABLE run; --", "\ud7ff", "😀",
    "../../etc/passwd",
    b"", b"\xff\xfe", b"\x00" * 40, "{}", "[]", "null", "[" * 5000, '{"a": 1}', '{"tables": [1]}', '{"seeds": [-1]}',
    "pending", "running", "completed", "failed", "cancelled", "pruned", "interrupted", "diverged", "lost",
    "f" * 32, "F" * 32, "0" * 31 + "/", "f" * 64, *ELSEWHERE,
]  # fmt: skip


class Endless(BaseException):
    """A command that did not come to its end."""


def endless(*_) -> NoReturn:
    raise Endless


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a database, its files, and something precious beside them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "precious").mkdir()
    (folder / "precious" / "data").write_text("precious")
    (folder / "grid.yaml").write_text(GRID)
    plan = load_grid(folder / "grid.yaml")
    with open_database(folder / DB, write=True, create=True) as database:
        runs = reading.runs(database, recording.register(database, plan))
        files = files_beside(database.location)
        for run, end in zip(
            runs, ["done", "done", "diverged", "failed", "stopped", "left", "new", "done"], strict=True
        ):
            if end == "new":
                continue
            attempt = claims.claim(database, run.id, "elsewhere/b/n/1/2/3", -5 if end == "left" else 60)
            hand = recording.RunWriter(database, run.id, "elsewhere/b/n/1/2/3", attempt)
            hand.begin({"torch": "2.13.0"}, "data", "code", 0, None, {"vocabulary_size": 100, "test/unknown_rate": 0.1})
            rows = [("train/loss", step, 4.0 - step / 10) for step in (1, 10, 20)]
            rows += [("valid/loss", step, 3.5) for step in (10, 20)]
            hand.record([*rows, ("model/parameters", 0, 1000.0), ("test/loss", 20, 3.0 + run.seed / 10)], 20)
            hand.outputs("test/translations", ["ein Hund"])
            checkpoints = CheckpointFiles(files / folder_of(run))
            checkpoints.write("step", 10, {})
            hand.checkpoint(10)
            if end == "done":
                weights = name_of(checkpoints.write("best", 20, {"seed": run.seed})).sha256
                definitions = {"test/perplexity": "e to the loss"}
                hand.complete(3.0, 20, 20.0 + run.seed, definitions, 20, weights_sha256=weights)
            elif end == "diverged":
                hand.diverge("training loss is nan", 20)
            elif end == "failed":
                hand.fail("ValueError: no", "Traceback …", 20)
            elif end == "stopped":
                hand.interrupt(20)
    return folder


class Workers:
    """In the place of the server: does what a worker does with the files and the database, but does not train."""

    def __call__(self, command, *, pass_fds, **_):
        self.channel = socket.socket(fileno=os.dup(pass_fds[0]))
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        while (message := receive(self.channel)) is not None:
            if message["do"] == "start":
                claimed = Work(**message["work"])
                try:
                    with open_database(claimed.database, write=True) as database:
                        code = worker._attempt(claimed, claimed.attempt, self.channel, database, StopRequest())
                except KdxError as error:
                    self._say(trouble(claimed.run_id, error))
                    code = STOPPED
                except Fenced:
                    code = TAKEN
                self._say({"event": "exit", "run": claimed.run_id, "code": code})

    def _say(self, message):
        with contextlib.suppress(BrokenPipeError):  # a sweep that ends with an error does not listen to the end
            send(self.channel, message)

    def kill(self):
        pass

    def wait(self, timeout=None):
        self.thread.join()
        self.channel.close()
        return 0


@pytest.fixture
def workers(monkeypatch, data_home):
    def train(spec, seed, *, folder, recorder, **_):
        recorder.begin({"torch": "x"}, "data", "code", 0, None, {})
        return RunOutcome(None, 20, 3.0, 20, 3.0, {})

    monkeypatch.setattr("kdx.sweep.server_process.subprocess.Popen", Workers())
    monkeypatch.setattr(worker, "train", train)
    monkeypatch.setattr(worker, "_log_to", lambda path: None)
    # What types the commands has no descriptor for messages.
    monkeypatch.setattr("faulthandler.register", lambda *_, **__: None)


@pytest.fixture
def theirs(made, tmp_path, workers, monkeypatch) -> None:
    """The working folder is a copy of the made one."""
    shutil.copytree(made, tmp_path / "theirs")
    monkeypatch.chdir(tmp_path / "theirs")
    monkeypatch.setattr("kdx.sweep.supervisor.LOOK_AGAIN", 0.1)


def columns() -> list[tuple[str, str]]:
    from kdx.store.schema import metadata

    return [(table.name, column.name) for table in metadata.tables.values() for column in table.c]


def mutate(path: Path, draw: random.Random) -> str:
    """Edits a few values, as somebody could who has the file; what was done."""
    done = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchone()
        connection.execute("DROP TRIGGER run_final_state")
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            table, column = draw.choice(columns())
            rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()
            at = draw.randrange(len(rows)) if rows else 0
            value = draw.choice(JUNK)
            if draw.random() < 0.3 and rows:
                value = edited(rows[at][0], draw)
            key = "rowid" if table not in ("metric",) else None
            which = (
                f"WHERE rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {at})" if key and draw.random() < 0.8 else ""
            )
            done.append(f"{table}.{column} = {str(value)[:60]!r} {which}")
            try:
                connection.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {which}", (value,))
            except (sqlite3.IntegrityError, OverflowError, UnicodeEncodeError, sqlite3.OperationalError) as error:
                done[-1] += f" ({error})"
        connection.execute(trigger)
    return "; ".join(done)


def edited(value: object, draw: random.Random) -> object:
    """Something close to what stands there."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            found = json.loads(value)
            within = found
            while isinstance(within, dict | list) and within:
                key = draw.choice(list(within)) if isinstance(within, dict) else draw.randrange(len(within))
                if not isinstance(within[key], dict | list) or draw.random() < 0.3:
                    within[key] = draw.choice([None, -1, 1e300, "x", [], {}, 10**30, True, "../precious"])
                    break
                within = within[key]
            return json.dumps(found)
        except ValueError:
            return value[:-1]
    if isinstance(value, str):
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice(["", "/", "..", "\0", "x"]) + value[at + 1 :]
    if isinstance(value, bytes):
        return value[: len(value) // 2] + b"\0"
    return draw.choice([str(value), -value, value + 0.5, value * 10**6]) if isinstance(value, int | float) else 5


def beside(folder: Path) -> str:
    """Everything that is not of the database, its files, or asked for by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).parts[0]
        if name.startswith("runs.") or name in ("out", "page.html") or not path.is_file():
            continue
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize("change", ["generation = '0/../../precious'", "cell_id = '../../precious'"])
def test_a_path_in_the_place_of_a_number_or_a_hash_reaches_no_file(theirs, change, figure):
    with closing(sqlite3.connect(DB)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"UPDATE run SET {change} WHERE id = 1")
    assert Path("precious/data").read_text() == "precious"
    figure(f"{change}: refused by SQLite")


@pytest.mark.parametrize(
    "change", ["lease_until = 2e11", "lease_until = NULL", "owner = NULL", "owner = 'x/y/z/-1/0/0'", "owner = ''"]
)
def test_a_run_that_nobody_will_ever_give_back_is_taken(theirs, change):
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute(f"UPDATE run SET {change} WHERE state = 'running'")
    before = signal.signal(signal.SIGALRM, endless)
    signal.alarm(WITHIN)
    try:
        assert CliRunner().invoke(app, ["resume"]).exit_code in (0, 4)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    with open_database(DB, write=False) as database:
        assert RunState.RUNNING not in {run.state for run in reading.inventory(database).runs}


def test_a_database_that_was_edited_at_random_harms_nothing(made, tmp_path, series, workers, monkeypatch, figure):
    monkeypatch.setattr("kdx.sweep.supervisor.LOOK_AGAIN", 0.1)
    before = signal.signal(signal.SIGALRM, endless)
    refused, codes = 0, set()
    rounds = count("DATABASES", 15)
    try:
        for number in range(rounds):
            folder = tmp_path / str(number)
            shutil.copytree(made, folder, symlinks=True)
            monkeypatch.chdir(folder)
            told = mutate(folder / DB, series)
            there = beside(folder)
            for words in map(series.choice, COMMANDS):
                shutil.rmtree("out", ignore_errors=True)
                signal.alarm(WITHIN)
                result = CliRunner().invoke(app, words)
                signal.alarm(0)
                error = result.exception
                assert not isinstance(error, Endless), f"kdx {' '.join(words)} after {told}"
                what = "".join(traceback.format_exception(error)) if error else ""
                assert error is None or isinstance(error, KdxError | SystemExit), f"kdx {words} after {told}: {what}"
                refused += isinstance(error, KdxError)
                codes.add(error.exit_code if isinstance(error, KdxError) else result.exit_code)
                assert beside(folder) == there, f"kdx {' '.join(words)} after {told} wrote elsewhere"
            shutil.rmtree(folder)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert codes <= {0, 1, 2, 3, 4, 5}
    figure(f"{rounds} databases, {rounds * len(COMMANDS)} commands: {refused} refused, 0 writes elsewhere")


@pytest.mark.parametrize("spec", ["😀", "[]", "{}", '{"training": {"steps": "many"}}'])
def test_a_cell_that_is_not_what_its_id_says_is_refused_by_name(theirs, spec):
    with closing(sqlite3.connect(DB)) as connection, connection:
        (cell,) = connection.execute("SELECT cell_id FROM run WHERE state = 'completed'").fetchone()
        connection.execute("UPDATE cell SET spec = ? WHERE id = ?", (spec, cell))
    for words in (["plan", "grid.yaml"], ["plan", "grid.yaml", "--set", "training.steps=40"], ["report"], ["resume"]):
        error = CliRunner().invoke(app, words).exception
        assert isinstance(error, KdxError) and cell in str(error), words


@pytest.mark.parametrize("change", ["attempt = 0", "attempt = 1000000000", "generation = 1000000000", "seed = 1"])
def test_rows_that_contradict_each_other_are_told(theirs, change):
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute(f"UPDATE OR REPLACE run SET {change} WHERE id IN (1, 5, 6)")
    for words in (["resume"], ["retry", "1"]):
        error = CliRunner().invoke(app, words).exception
        assert error is None or isinstance(error, KdxError | SystemExit), error
