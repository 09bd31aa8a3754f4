"""What one file of SQLite and one server of PostgreSQL carry: the database traffic of 10, 100 and 1,000 workers.

A simulated worker does through kdx's own code what a real one does, but for the training: its run writes numbers, its
supervisor looks for work, renews leases, and claims a run when one has ended. Several of them share a thread, and so at
most one connection; there are `CONNECTIONS` threads. Each worker has its own pace (`kdx.sweep.pace`), and runs end at
random times that are drawn beforehand.

A latency counts from when something was due, not from when a thread came to it, so a slow database gets no less load
[Schroeder et al. 2006, "Open versus closed: a cautionary tale"]. What was not done at the end counts as late as it was
then.

The server keeps the settings of its package, fsync and 100 connections included. PgBouncer stands before it in a third
series, where it is installed. All of it shares a machine, so the processor time of the server is told apart.
"""

import multiprocessing
import os
import random
import shutil
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from sqlalchemy import bindparam, insert, update

from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.store import claims, reading, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.store.schema import attempt, now, run
from kdx.sweep.decide import Action, Decision, decisions_in
from kdx.sweep.lease_holder import LEASE, RENEW_EVERY, LeaseHolder
from kdx.sweep.pace import Pace
from kdx.sweep.placement import ClaimOrder
from kdx.sweep.supervisor import LOOK_AT_LATEST, LOOK_WHEN_FULL
from tests.postgresql_server import PostgresqlServer, has_pooler, pooler, programs

WORKERS = (10, 100, 1000)
ROUNDS, WARM, SECONDS = 3, 8.0, 10.0
"""The first seconds, in which each worker comes to its pace, do not count."""
ENDS = 2.0
"""Runs that end a second, after each of which another is claimed: with 1,000 workers, runs of eight minutes."""
ROWS = 10
"""Numbers in each write."""
CONNECTIONS, PROCESSES = 90, 6
FLUSH = 1.0, 30.0
"""Least and most seconds between two writes, as `kdx.sweep.worker` has them, which takes torch to import."""
MOST_CLAIM = 0.05
"""Median seconds of a claim that are promised for 1,000 workers on a server behind PgBouncer."""

GRID = """
name: scale
task: prediction
data: {corpus: synthetic-language}
axes:
  kernel: [linear, polynomial, exponential, rbf, cosine]
  symmetry: [asymmetric, symmetric]
"""
CELLS = 10


class Done(NamedTuple):
    """Something that was due, by the monotonic clock."""

    what: str
    due: float
    ended: float | None
    """None: it was not done when the time was over."""


class Event(NamedTuple):
    """Something that is due, by the monotonic clock."""

    due: float
    worker: int
    what: str


def measure() -> dict[str, Any]:
    """What each kind of database carries of each kind of transaction, and how it does under so many workers."""
    with tempfile.TemporaryDirectory() as folder:
        result = {"sqlite": _measured(lambda: str(Path(tempfile.mkdtemp(dir=folder)) / "runs.db"), None)}
    if (there := programs()) is None:
        return result
    with started_server(there) as server:
        result["postgresql"] = _measured(lambda: _database_of(server), server)
        if not has_pooler():
            return result
        with pooler(server) as port:
            result["pgbouncer"] = _measured(lambda: _database_of(server).replace(str(server.port), str(port)), server)
    claims = result["pgbouncer"]["workers"][WORKERS[-1]]["claim"]["median ms"]
    return {**result, "most ms of a claim": 1000 * MOST_CLAIM, "within": claims <= 1000 * MOST_CLAIM}


def _measured(address: Callable[[], str], server: PostgresqlServer | None) -> dict[str, Any]:
    rounds = {count: [simulate(address(), count, server) for _ in range(ROUNDS)] for count in WORKERS}
    return {"workers": {count: _medians(measured) for count, measured in rounds.items()}}


def _medians(rounds: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the median of each number over the rounds that have it; few workers seldom look for work."""
    kinds = {kind: values for measured in rounds for kind, values in measured.items()}
    return {
        kind: {key: round(median(measured[kind][key] for measured in rounds if kind in measured), 2) for key in values}
        for kind, values in kinds.items()
    }


@contextmanager
def started_server(there: Path) -> Iterator[PostgresqlServer]:
    home = Path(tempfile.mkdtemp(prefix="kdx-pg-"))  # another user has to reach it, and a socket's path is short
    home.chmod(0o755)
    try:
        server = PostgresqlServer(home, there, settings="")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(home)


def _database_of(server: PostgresqlServer) -> str:
    name = f"scale{time.monotonic_ns()}"
    server.execute(f"CREATE DATABASE {name}")
    return server.address(name)


def simulate(address: str, workers: int, server: PostgresqlServer | None) -> dict[str, dict[str, float]]:
    """Return kind of transaction → how many per second these workers make, and the latencies in milliseconds."""
    warm, seconds = WARM, SECONDS
    more = 2 * round(ENDS * (warm + seconds)) + workers  # more than are drawn, of which each worker has a share
    plan = _planned(address, workers, workers + more)
    context = multiprocessing.get_context("fork")
    processes = min(PROCESSES, workers)
    step, results, began = context.Barrier(processes + 1, timeout=600), context.SimpleQueue(), context.Value("d")

    def work(number: int) -> None:
        with open_database(address, write=True, patient=True) as database:
            own = [Worker(database, plan, worker) for worker in range(number, workers, processes)]
            step.wait()
            step.wait()
            rng = random.Random(f"{address} {number}")
            events = [*_drawn(rng, len(own), ENDS / processes, warm + seconds), *_usual(rng, len(own))]
            at = [event._replace(due=event.due + began.value - warm) for event in events]
            results.put(_work(own, at, began.value + seconds))

    def work_or_say(number: int) -> None:
        try:
            work(number)
        except BaseException:
            step.abort()
            results.put(traceback.format_exc())
            raise

    forked = [context.Process(target=work_or_say, args=(number,)) for number in range(processes)]
    for process in forked:
        process.start()
    step.wait()  # each process has its workers
    load, began.value = os.getloadavg()[0], time.monotonic() + 0.5 + warm
    step.wait()
    time.sleep(began.value - time.monotonic())
    of_server = server_seconds(server)
    time.sleep(seconds)
    of_server = server_seconds(server) - of_server
    answers = [results.get() for _ in forked]
    if broken := [answer for answer in answers if isinstance(answer, str)]:
        raise RuntimeError(broken[0])
    for process in forked:
        process.join()
    kinds: dict[str, list[Done]] = defaultdict(list)
    for event in (done for transactions, _ in answers for done in transactions if done.due >= began.value):
        kinds[event.what].append(event)
    cores = {"workers": sum(busy for _, busy in answers) / (warm + seconds), "load before": load}
    if server is not None:
        cores["server"] = of_server / seconds
    return {
        **{kind: _latencies(its, seconds, began.value + seconds) for kind, its in sorted(kinds.items())},
        "cores": {key: round(value, 2) for key, value in cores.items()},
    }


def _holder(worker: int) -> str:
    """Each is on a machine of its own, of whose processes nobody else can know whether they live."""
    return f"machine {worker}/-/-/1/-/-"


def _planned(address: str, workers: int, runs: int) -> Plan:
    """Registers a sweep of so many runs, of which each worker has one."""
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(GRID)
        plan = load_grid(grid, given=[f"seeds={-(-runs // CELLS)}"], most_runs=runs + CELLS)
    with open_database(address, write=True, create=True) as database:
        recording.register(database, plan)
        held = [{"which": worker + 1, "holder": _holder(worker)} for worker in range(workers)]
        with database.write() as connection:
            claimed = {"state": RunState.RUNNING, "owner": bindparam("holder"), "attempt": 1}
            of_worker = update(run).where(run.c.id == bindparam("which"))
            connection.execute(of_worker.values(**claimed, lease_until=now() + 10 * LEASE), held)
            begun = {"run_id": bindparam("which"), "number": 1, "owner": bindparam("holder"), "first_step": 0}
            connection.execute(insert(attempt).values(**begun, started=now()), held)
    return plan


@dataclass
class Worker:
    """A worker with one run at a time."""

    database: Database
    plan: Plan
    number: int
    step: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while its run writes; a run neither writes twice at a time nor after its end."""

    def __post_init__(self) -> None:
        self.leases = LeaseHolder(self.database, _holder(self.number))
        self.files = self.database.location.with_suffix(".files")
        self.flushes, self.looks = Pace(*FLUSH, time.monotonic), Pace(1.0, LOOK_AT_LATEST, time.monotonic)
        self.run = RunWriter(self.database, self.number + 1, self.leases.name, 1)
        self.order: ClaimOrder[Decision] = ClaimOrder(())

    def write(self) -> float:
        """Writes numbers, and returns when that is due again."""
        with self.lock, self.flushes.keep():
            self.step += 2
            names = [f"train/{number}" for number in range(ROWS // 2)]
            rows = [(name, step, 1 / step) for name in names for step in (self.step - 1, self.step)]
            self.run.record(rows, self.step)
        return self.flushes.next

    def renew(self) -> None:
        """Renews the leases."""
        claims.renew(self.database, self.leases.name, LEASE)

    def look(self) -> float:
        """Looks for work, and returns when that is due again."""
        with self.database.connected(), self.looks.keep():
            decisions = decisions_in(self.database, self.plan)
            self.order = ClaimOrder(decision for decision in decisions if decision.action is Action.START)
        return self.looks.next + LOOK_WHEN_FULL

    def end(self) -> tuple[float, float]:
        """Ends its run and claims another one; when it began to claim that one, and when it had it."""
        with self.lock:
            self.run.complete(1.0, self.step, 1.0, {}, self.step)
            reading.load_run(self.database, self.run.run_id)
            if not self.order:
                self.look()
            with self.database.connected():
                began = time.monotonic()
                for decision in self.order:
                    assert decision.record is not None
                    number = self.leases.claim(decision.record)
                    if number is not None:
                        self.run = RunWriter(self.database, decision.record.id, self.leases.name, number)
                        return began, time.monotonic()
                    self.order.too_late()
        raise AssertionError("nothing is left to claim")


def _drawn(rng: random.Random, workers: int, often: float, seconds: float) -> list[Event]:
    """Return ends of runs at the times of a Poisson process, of each worker in turn."""
    events: list[Event] = []
    at = rng.expovariate(often)
    while at < seconds:
        events.append(Event(at, len(events) % workers, "end"))
        at += rng.expovariate(often)
    return events


def _usual(rng: random.Random, workers: int) -> list[Event]:
    """The first time of all that each worker does again and again."""
    usual = {"write": RENEW_EVERY, "look": LOOK_WHEN_FULL, "renew": RENEW_EVERY}
    return [Event(rng.uniform(0, most), worker, what) for worker in range(workers) for what, most in usual.items()]


def _work(workers: Sequence[Worker], events: Sequence[Event], until: float) -> tuple[list[Done], float]:
    """Do what is due, in threads that share the workers; return what was done, and the processor time."""
    threads = CONNECTIONS // PROCESSES
    heaps: list[list[Event]] = [[] for _ in range(threads)]
    for event in events:
        # A run and its supervisor are two processes.
        heaps[(2 * event.worker + (event.what == "write")) % threads].append(event)
    done: list[Done] = []
    before = time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(_thread, workers, heap, until, done) for heap in heaps if heap]:
            job.result()
    return done, time.process_time() - before


def _thread(workers: Sequence[Worker], heap: list[Event], until: float, done: list[Done]) -> None:
    heapify(heap)
    while heap and heap[0].due < until:
        event = heappop(heap)
        time.sleep(max(0.0, event.due - time.monotonic()))
        if time.monotonic() >= until:
            done.append(Done(event.what, event.due, None))
            continue
        worker, next_due = workers[event.worker], None
        match event.what:
            case "write":
                next_due = worker.write()
            case "look":
                next_due = worker.look()
            case "renew":
                worker.renew()
                next_due = event.due + RENEW_EVERY
            case "end":
                done.append(Done("claim", *worker.end()))
        done.append(Done(event.what, event.due, time.monotonic()))
        if next_due is not None:
            heappush(heap, event._replace(due=next_due))


def _latencies(transactions: Sequence[Done], seconds: float, until: float) -> dict[str, float]:
    late = [
        1000 * ((until if transaction.ended is None else transaction.ended) - transaction.due)
        for transaction in transactions
    ]
    return {
        "a second": round(sum(transaction.ended is not None for transaction in transactions) / seconds, 1),
        "median ms": round(median(late), 1),
        "95% within ms": round(quantiles(late, n=20)[-1] if len(late) > 1 else late[0], 1),
    }


def server_seconds(server: PostgresqlServer | None) -> float:
    """Processor time of the server and of all its sessions, those that ended included."""
    if server is None:
        return 0.0
    main = Path(f"/proc/{server.process}")
    ticks = sum(_ticks(main)[:4])
    for child in (main / "task" / main.name / "children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, and counts at the next look
            ticks += sum(_ticks(Path(f"/proc/{child}"))[:2])
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(process: Path) -> list[int]:
    """utime, stime, cutime and cstime [proc(5)]."""
    return [int(part) for part in (process / "stat").read_text().rpartition(")")[2].split()[11:15]]
