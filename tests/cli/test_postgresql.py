"""Commands with a database on a server: the same answers, and its password nowhere."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grids import TINY
from postgresql_server import PostgresqlServer, pooler
from served import Served
from waiting import wait_until

from kdx.cli.context import Context
from kdx.store.database import open_database

pytestmark = pytest.mark.slow

SECRET = "s3cret-w0rd"


@pytest.fixture
def address(postgresql_server: PostgresqlServer, terminal, monkeypatch) -> str:
    """An empty database of a user with a password, which KDX_DB names."""
    postgresql_server.execute(
        f"CREATE USER scholar PASSWORD '{SECRET}'", "CREATE DATABASE study OWNER scholar TEMPLATE template0"
    )
    shown = postgresql_server.address("study", "scholar")
    terminal.environment |= {
        "KDX_DB": shown.replace("scholar@", f"scholar:{SECRET}@"),
        "KDX_FILES": str(terminal.folder / "files"),
    }
    yield shown
    postgresql_server.execute("DROP DATABASE study WITH (FORCE)", "DROP USER scholar")


def rows(server: PostgresqlServer, statement: str) -> list[Any]:
    with server.connected("study") as connection:
        return connection.execute(statement).fetchall()


def test_a_sweep_is_killed_and_resumed_and_its_password_is_nowhere(
    terminal, address: str, postgresql_server: PostgresqlServer
):
    terminal.write("tiny.yaml", TINY % {"steps": 300, "seeds": 2})
    sweep = terminal.start("sweep", "tiny.yaml", "--workers", "1", "--mirror", "tensorboard")
    running = "SELECT count(*) FROM run WHERE state = 'running'"
    # The first look comes before the tables.
    wait_until(
        lambda: (
            rows(postgresql_server, "SELECT to_regclass('run')") != [(None,)]
            and rows(postgresql_server, running) != [(0,)]
        )
    )
    mirror = [int(pid) for pid in Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()]
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (sweep.pid, *mirror, *terminal.workers())]
    assert any(b"kdx.mirrors.follow" in line for line in lines)
    assert len(lines) > 1 and not any(SECRET.encode() in line for line in lines)
    sweep.kill()
    sweep.wait()
    for pid in terminal.workers():
        with contextlib.suppress(ProcessLookupError):  # it may have ended with its sweep
            os.kill(pid, signal.SIGKILL)
    assert sweep.stdout is not None
    sweep.stdout.close()

    said: list[subprocess.CompletedProcess[str]] = [terminal.type("kdx resume tiny --workers 1 --mirror tensorboard")]
    assert said[0].returncode == 0, said[0].stderr
    assert said[0].stderr.endswith("2 runs: 2 completed; next: kdx report tiny\n")
    assert rows(postgresql_server, "SELECT DISTINCT state FROM run") == [("completed",)]
    assert rows(postgresql_server, "SELECT count(*) FROM run WHERE attempt > 1")[0][0] >= 1
    assert len([*terminal.folder.rglob("*.tensorboard/tiny/*")]) == 2
    served = Served(terminal)
    pages = [served.ask(path) for path in ("/", "/sweep/tiny", "/run/1", "/claims/tiny")]
    assert [status for status, _ in pages] == [200] * 4 and "<svg" in pages[1][1]
    assert not any(SECRET in page for _, page in pages) and served.close() == 130
    for command, code in {
        "kdx report tiny": 0,
        "kdx report tiny --format html": 0,
        "kdx status": 0,
        "kdx show 1 --json": 0,
        "kdx logs 1": 0,
        "kdx plan tiny.yaml": 0,
        "kdx export tiny --to exported --weights --outputs": 0,
        "kdx query 'SELECT * FROM runs' --json": 0,
        "kdx doctor --fix --json": 0,
        "kdx gc": 0,
        "kdx db check": 0,
        "kdx db backup copy.db": 2,
        "kdx note tiny 'a note'": 0,
        "kdx invalidate 1 --why wrong": 0,
        "kdx query 'SELECT nothing'": 2,
        f"kdx status --db {address.replace('study', 'stud')}": 3,
    }.items():
        done = terminal.type(command)
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        said.append(done)
    assert not any(SECRET in done.stdout + done.stderr for done in said)
    assert SECRET not in terminal.messages()
    for path in terminal.folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    ours = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace = 'public'::regnamespace"
    names = rows(postgresql_server, ours)
    assert len(names) > 20
    for (name,) in names:
        assert SECRET not in str(rows(postgresql_server, f"TABLE {name}")), name


def test_a_wrong_password_is_one_message_and_nothing_is_started(terminal, address: str):
    terminal.environment["KDX_DB"] = address.replace("scholar@", "scholar:wr0ng@")
    terminal.write("tiny.yaml", TINY % {"steps": 60, "seeds": 2})
    done = terminal.type("kdx sweep tiny.yaml")
    assert (done.returncode, done.stdout) == (3, "")
    assert "error: " in done.stderr and f"{address}: the server refused scholar: the password is wrong" in done.stderr
    assert "wr0ng" not in done.stderr and "Traceback" not in done.stderr


def test_a_suggested_command_needs_no_password_that_kdx_db_has(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "")
    monkeypatch.setenv("KDX_DB", "postgresql://me:secret@host/runs")
    assert Context("postgresql://me@host/runs").options == ""
    assert Context("postgresql://me@host/other").options == " --db postgresql://me@host/other"


def test_a_check_suggests_no_copy_that_kdx_refuses_to_make(terminal, address: str):
    open_database(terminal.environment["KDX_DB"], write=True, create=True).close()
    checked = terminal.type("kdx db check")
    assert checked.returncode == 0 and checked.stderr.endswith(": nothing is wrong\n")


SEARCHED = """\
name: tuned
seeds: 1
task: translation
data: {corpus: synthetic-translation, train_lines: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, inner: 16}
training: {steps: 4, batch_tokens: 200, warmup: 2, validate_every: 4}
tune:
  parameters: {training.learning_rate: {low: 1e-4, high: 1e-1, log: true}}
  sampler: random
  trials: 2
  round: 2
evaluations: {wide: {beam: 2}}
"""


@pytest.fixture(params=["direct", pytest.param("pgbouncer", marks=pytest.mark.long)])
def through(request, terminal, address: str, postgresql_server: PostgresqlServer) -> Iterator[None]:
    """Has KDX_DB name the server, or a pooler before it."""
    if request.param == "direct":
        yield
        return
    with pooler(postgresql_server) as port:
        terminal.environment["KDX_DB"] = terminal.environment["KDX_DB"].replace(
            f":{postgresql_server.port}/", f":{port}/"
        )
        yield


def test_a_search_an_evaluation_a_copy_and_a_union_are_the_same_on_a_server(
    terminal, through, postgresql_server: PostgresqlServer
):
    """Each command that writes more than a run, once, at the smallest size that runs."""
    terminal.write("grid.yaml", SEARCHED)

    def says(command: str) -> str:
        done = terminal.type(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert SECRET not in done.stdout + done.stderr
        return done.stdout + done.stderr

    says("kdx sweep grid.yaml --search-only --workers 1")
    assert rows(postgresql_server, "SELECT state, count(*) FROM run WHERE search_id IS NOT NULL GROUP BY 1") == [
        ("completed", 2)
    ]
    says("kdx sweep grid.yaml --workers 1")
    assert rows(postgresql_server, "SELECT count(*) FROM run WHERE test_score IS NOT NULL") == [(1,)]
    made = "SELECT name, bits FROM evaluation_metric ORDER BY 1"
    first = rows(postgresql_server, made)
    assert first
    with postgresql_server.connected("study") as connection:
        connection.execute("DELETE FROM evaluation_document; DELETE FROM evaluation_metric; DELETE FROM evaluation")
    says("kdx evaluate tuned")
    assert rows(postgresql_server, made) == first

    report = terminal.type("kdx report --notes full").stdout
    beyond = terminal.type("kdx invalidate 4000000000 --why 'no such run'")
    assert beyond.returncode == 2 and "there is no run 4000000000" in beyond.stderr
    assert "1 sweep came" in says('kdx db import "$KDX_DB" --db copy.db')
    assert terminal.type("kdx report --notes full --db copy.db").stdout == report
    assert "0 runs and 0 sweeps came" in says("kdx db import copy.db")
    postgresql_server.execute("CREATE DATABASE study2 OWNER scholar TEMPLATE template0")
    try:
        assert "1 sweep came" in says('kdx db import copy.db --db "${KDX_DB}2"')
        assert "0 runs and 0 sweeps came" in says('kdx db import "${KDX_DB}2"')
        assert terminal.type('kdx report --notes full --db "${KDX_DB}2"').stdout == report
    finally:
        postgresql_server.execute("DROP DATABASE study2 WITH (FORCE)")
