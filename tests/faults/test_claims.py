"""Many workers, one database: each run is done once, whoever dies or hangs."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lengths import count
from postgresql_server import pooler

from kdx.grid.load import load_grid
from kdx.store import claims, reading, recording, schema
from kdx.store.check import check
from kdx.store.claims import Fenced
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import FINAL

LEASE = 0.6  # seconds
STEPS = 6
AMONG = 16
"""Of so many open runs each worker tries one, so that they often try the same one."""
GRID = """
name: many
task: prediction
data: {corpus: synthetic-language}
"""


def work(address: str, folder: Path, seed: int) -> None:
    """Claims what there is and does it, step by step, until all is done."""
    random_ = random.Random(seed)
    owner = f"worker {os.getpid()}"
    with open_database(address, write=True, patient=True) as database:
        while True:
            found = database.persist(lambda: reading.load_sweep(database))
            open_runs = [run.id for run in found.runs if run.state not in FINAL]
            if not open_runs:
                os._exit(0)
            run_id = random_.choice(open_runs[:AMONG])
            number = claims.claim(database, run_id, owner, LEASE)
            if number is None:
                time.sleep(0.01)
                continue
            (folder / "claimed").touch()
            hand = RunWriter(database, run_id, owner, number)
            try:
                for step in range(1, STEPS + 1):
                    time.sleep(random_.uniform(0, 0.02))
                    claims.renew(database, owner, LEASE)
                    hand.record([("train/loss", step, run_id + 1 / step)], step)
                hand.complete(1.0, STEPS, 1.0, {}, STEPS)
            except Fenced:
                (folder / f"fenced-{run_id}-{number}").touch()


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("pgbouncer", marks=pytest.mark.long)])
def address(request, tmp_path) -> Iterator[str]:
    """An address at which there is no database yet."""
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
        return
    server = request.getfixturevalue("postgresql_server")
    server.execute("CREATE DATABASE many")
    if request.param == "pgbouncer":
        with pooler(server) as port:
            yield server.address("many").replace(str(server.port), str(port))
    else:
        yield server.address("many")
    server.execute("DROP DATABASE many WITH (FORCE)")


@pytest.fixture
def drop(request, address) -> Callable[[], bool] | None:
    """Cuts a connection of some worker, if one is there just now; None: there are no connections to cut."""
    if not address.startswith("postgresql"):
        return None
    server = request.getfixturevalue("postgresql_server")
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = 'many' AND state <> 'idle' ORDER BY random() LIMIT 1"
    )

    def drop() -> bool:
        with server.connected() as connection:
            return connection.execute(cut).fetchone() == (True,)

    return drop


def test_each_run_is_done_once_whoever_is_killed_or_stopped(series, figure, tmp_path, monkeypatch, address, drop):
    workers_at_once = count("WORKERS", 8)
    runs, kills, stops = count("RUNS", 40), count("WORKER_KILLS", 8), count("STOPS", 3)
    drops = count("DROPS", 5) if drop else 0
    monkeypatch.setattr(claims, "STALLS", 10**6)
    (tmp_path / "grid.yaml").write_text(GRID)
    plan = load_grid(tmp_path / "grid.yaml", given=[f"seeds={runs}"])
    with open_database(address, write=True, create=True) as database:
        recording.register(database, plan)

    workers = {start(address, tmp_path, series.random()) for _ in range(workers_at_once)}
    asleep: dict[int, float] = {}
    done = {"kills": 0, "stops": 0, "drops": 0}
    faults = ["kills"] * kills + ["stops"] * stops + ["drops"] * drops
    series.shuffle(faults)
    while workers:
        time.sleep(0.05)
        for pid in [pid for pid, since in asleep.items() if time.monotonic() - since > 2 * LEASE]:
            os.kill(pid, signal.SIGCONT)
            del asleep[pid]
        for pid in list(workers):
            if pid not in asleep and os.waitpid(pid, os.WNOHANG)[0]:
                workers.remove(pid)
        awake = sorted(workers - set(asleep))
        if not faults or not awake or not (tmp_path / "claimed").exists():
            continue
        pid, fault = series.choice(awake), faults[-1]
        if fault == "drops" and drop and not drop():
            continue
        faults.pop()
        done[fault] += 1
        if fault == "stops":
            os.kill(pid, signal.SIGSTOP)
            asleep[pid] = time.monotonic()
        elif fault == "kills":
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            workers.remove(pid)
            workers.add(start(address, tmp_path, series.random()))

    with open_database(address, write=False) as database:
        found = reading.load_sweep(database).runs
        with database.read() as connection:
            ends = connection.execute(schema.attempt.select().where(schema.attempt.c.outcome == "completed")).all()
            rows = {(row.run_id, row.step): row.value for row in connection.execute(schema.metric.select())}
        assert check(database).faults == ()
    again = sum(run.attempt > 1 for run in found)
    fenced = len(list(tmp_path.glob("fenced-*")))
    assert all(run.state == "completed" for run in found)
    assert sorted(end.run_id for end in ends) == sorted(run.id for run in found), "each completed once"
    assert rows == {(run.id, step): run.id + 1 / step for run in found for step in range(1, STEPS + 1)}
    figure(
        f"{runs} runs by {workers_at_once} workers, {done['kills']} kills, "
        f"{done['stops']} stops longer than the lease, {done['drops']} connections cut: "
        f"{len(ends)} completed once, {again} tried again, {fenced} late writes refused"
    )


def start(address: str, folder: Path, seed: float) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(address, folder, int(seed * 2**32))
        finally:
            os._exit(1)
    return pid
