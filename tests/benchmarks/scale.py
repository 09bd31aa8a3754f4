"""What one file of SQLite and one server of PostgreSQL carry: the database traffic of 10, 100 and 1,000 workers.

A simulated worker does through kdx's own code what a real one does, but for the training: its run writes numbers, its
supervisor looks for work, renews leases, and claims a run when one has ended. Several of them share a thread, and so at
most one connection; there are `CONNECTIONS` threads. Two loads are put on a database:

- of one kind alone, first one after another, then at a rate that doubles until the database cannot keep up;
- that of so many workers, each at its own pace (`kdx.sweep.pace`), while runs end at times that are drawn beforehand.

A latency counts from when something was due, not from when a thread came to it, so that a database which is late is
asked no less [Schroeder et al. 2006, "Open versus closed: a cautionary tale"]. What was not done when the time was over
counts as late as it was then.

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
from kdx.store import claims, recording
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunState
from kdx.store.schema import attempt, now, run
from kdx.sweep.decide import Action, decisions_in
from kdx.sweep.lease_holder import LEASE, RENEW_EVERY, LeaseHolder
from kdx.sweep.pace import Pace
from kdx.sweep.placement import ClaimOrder
from kdx.sweep.supervisor import LOOK_AT_LATEST, LOOK_WHEN_FULL
from tests.postgresql_server import PostgresqlServer, has_pooler, pooler, programs

WORKERS = (10, 100, 1000)
ROUNDS, WARM, SECONDS = 3, 8.0, 10.0
"""Of a load of many workers the first seconds do not count, in which each of them comes to its pace."""
ENDS = 2.0
"""Runs that end a second, after each of which another is claimed: with 1,000 workers, runs of eight minutes."""
RATES = (25, 50, 100, 200, 400, 800, 1600)
"""Of one kind alone, a second."""
ALONE = 150
"""Of one kind, one after another."""
RATED_WORKERS, RATED_SECONDS = 20, 5.0
ROWS = 10
"""Numbers in each write."""
CONNECTIONS, PROCESSES = 90, 6
FLUSH = 1.0, 30.0
"""Least and most seconds between two writes, as `kdx.sweep.worker` has them, which takes torch to import."""
KEEPS_UP = 0.5
"""Most seconds that the median of what is asked of a database may take while it keeps up."""
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
        found = {"sqlite": _measured(lambda: str(Path(tempfile.mkdtemp(dir=folder)) / "runs.db"), None)}
    if (there := programs()) is None:
        return found
    with _server(there) as server:
        found["postgresql"] = _measured(lambda: _database_of(server), server)
        if not has_pooler():
            return found
        with pooler(server) as port:
            found["pgbouncer"] = _measured(lambda: _database_of(server).replace(str(server.port), str(port)), server)
    claims = found["pgbouncer"]["workers"][WORKERS[-1]]["claim"]["median ms"]
    return {**found, "most ms of a claim": 1000 * MOST_CLAIM, "within": claims <= 1000 * MOST_CLAIM}


def _measured(address: Callable[[], str], server: PostgresqlServer | None) -> dict[str, Any]:
    return {
        "costs": _costs(address(), server),
        "carries a second": {kind: _carried(address, kind, server) for kind in ("claim", "write", "renew")},
        "workers": {count: _medians([simulate(address(), count, server) for _ in range(ROUNDS)]) for count in WORKERS},
    }


def _costs(address: str, server: PostgresqlServer | None) -> dict[str, dict[str, float]]:
    """What each kind of transaction takes where nobody else is at work, one after another."""
    with open_database(address, write=True, create=True) as database:
        worker = Worker(database, _planned(address, 1, 2 * ALONE + 1), 0, 1)
        kinds: dict[str, Callable[[], object]] = {
            "claim": worker.claim,
            "write": worker.write,
            "renew": worker.renew,
            "look": worker.look,
        }
        found = {kind: _cost(do, server) for kind, do in kinds.items()}
        with database.connected():
            return {**found, "claim after a look": _cost(worker.claim, server)}


def _cost(do: Callable[[], object], server: PostgresqlServer | None) -> dict[str, float]:
    times = []
    of_server, here = _server_seconds(server), time.process_time()
    for _ in range(ALONE):
        begun = time.monotonic()
        do()
        times.append(time.monotonic() - begun)
    here = time.process_time() - here
    time.sleep(0.5)  # a session ends a moment after its client
    found = {"median ms": median(times), "processor ms of the worker": here / ALONE}
    if server is not None:
        found["processor ms of the server"] = (_server_seconds(server) - of_server) / ALONE
    return {key: round(1000 * seconds, 2) for key, seconds in found.items()}


def _carried(address: Callable[[], str], kind: str, server: PostgresqlServer | None) -> dict[str, float]:
    """The largest rate with which a database keeps up; 0: with none of them."""
    found: dict[str, float] = {"a second": 0}
    for rate in RATES:
        measured = simulate(address(), RATED_WORKERS, server, rate=(kind, rate))
        if measured[kind]["median ms"] > 1000 * KEEPS_UP:
            break
        found = measured[kind]
        if server is not None:
            found["processor ms of the server"] = round(1000 * measured["cores"]["server"] / found["a second"], 2)
    return found


def _medians(rounds: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Of each number, over the rounds that have it; few workers seldom look for work."""
    kinds = {kind: values for one in rounds for kind, values in one.items()}
    return {
        kind: {key: round(median(one[kind][key] for one in rounds if kind in one), 2) for key in values}
        for kind, values in kinds.items()
    }


@contextmanager
def _server(there: Path) -> Iterator[PostgresqlServer]:
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


def simulate(
    address: str, workers: int, server: PostgresqlServer | None, rate: tuple[str, int] | None = None
) -> dict[str, dict[str, float]]:
    """What so many workers do: kind → how often a second, and its latencies in milliseconds.

    Args:
        rate: a kind that they do so often a second, and nothing else; None: whatever workers do.
    """
    warm, seconds = (0.0, RATED_SECONDS) if rate else (WARM, SECONDS)
    often = rate[1] if rate else ENDS
    more = 2 * round(often * (warm + seconds)) + workers  # more than are drawn, of which each worker has a share
    plan = _planned(address, workers, workers + more)
    context = multiprocessing.get_context("fork")
    processes = min(PROCESSES, workers)
    step, results, began = context.Barrier(processes + 1, timeout=600), context.SimpleQueue(), context.Value("d")

    def work(number: int) -> None:
        with open_database(address, write=True, patient=True) as database:
            its = [Worker(database, plan, one, workers) for one in range(number, workers, processes)]
            step.wait()
            step.wait()
            rng = random.Random(f"{address} {number}")
            drawn = _drawn(rng, len(its), rate[0] if rate else "end", often / processes, warm + seconds)
            events = drawn if rate else [*drawn, *_usual(rng, len(its))]
            at = [one._replace(due=one.due + began.value - warm) for one in events]
            results.put(_work(its, at, began.value + seconds, again=rate is None))

    def work_or_say(number: int) -> None:
        try:
            work(number)
        except BaseException:
            step.abort()
            results.put(traceback.format_exc())
            raise

    forked = [context.Process(target=work_or_say, args=(number,)) for number in range(processes)]
    for one in forked:
        one.start()
    step.wait()  # each process has its workers
    load, began.value = os.getloadavg()[0], time.monotonic() + 0.5 + warm
    step.wait()
    time.sleep(began.value - time.monotonic())
    of_server = _server_seconds(server)
    time.sleep(seconds)
    of_server = _server_seconds(server) - of_server
    answers = [results.get() for _ in forked]
    if broken := [one for one in answers if isinstance(one, str)]:
        raise RuntimeError(broken[0])
    for one in forked:
        one.join()
    kinds: dict[str, list[Done]] = defaultdict(list)
    for one in (done for its, _ in answers for done in its if done.due >= began.value):
        kinds[one.what].append(one)
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
        plan = load_grid(grid, seeds=range(-(-runs // CELLS)), most_runs=runs + CELLS)
    with open_database(address, write=True, create=True) as database:
        recording.register(database, plan, plan.grid)
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
    of: int
    """How many workers there are."""
    step: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while its run writes; a run neither writes twice at a time nor after its end."""

    def __post_init__(self) -> None:
        self.leases = LeaseHolder(self.database, _holder(self.number))
        self.files = self.database.location.with_suffix(".files")
        self.flushes, self.looks = Pace(*FLUSH, time.monotonic), Pace(1.0, LOOK_AT_LATEST, time.monotonic)
        self.run = RunWriter(self.database, self.number + 1, self.leases.name, 1)
        self.next_run = self.number + 1 + self.of

    def claim(self) -> None:
        """Claims a run that nobody else claims."""
        assert claims.claim(self.database, self.next_run, self.leases.name, LEASE) is not None
        self.next_run += self.of

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
            decisions_in(self.database, self.plan)
        return self.looks.next + LOOK_WHEN_FULL

    def end(self) -> tuple[float, float]:
        """Ends its run and claims another one; when it began to claim that one, and when it had it."""
        with self.lock:
            self.run.complete(1.0, self.step, 1.0, {}, self.step)
            with self.database.connected():
                order = ClaimOrder(decisions_in(self.database, self.plan))
                began = time.monotonic()
                for decision in order:
                    if decision.action is not Action.START or decision.record is None:
                        continue
                    number = self.leases.claim(decision.record)
                    if number is not None:
                        self.run = RunWriter(self.database, decision.record.id, self.leases.name, number)
                        return began, time.monotonic()
                    order.too_late()
        raise AssertionError("nothing is left to claim")


def _drawn(rng: random.Random, workers: int, what: str, often: float, seconds: float) -> list[Event]:
    """Something at times of a Poisson process, which the workers do in turn."""
    events: list[Event] = []
    at = rng.expovariate(often)
    while at < seconds:
        events.append(Event(at, len(events) % workers, what))
        at += rng.expovariate(often)
    return events


def _usual(rng: random.Random, workers: int) -> list[Event]:
    """The first time of all that each worker does again and again."""
    usual = {"write": RENEW_EVERY, "look": LOOK_WHEN_FULL, "renew": RENEW_EVERY}
    return [Event(rng.uniform(0, most), worker, what) for worker in range(workers) for what, most in usual.items()]


def _work(its: Sequence[Worker], events: Sequence[Event], until: float, *, again: bool) -> tuple[list[Done], float]:
    """Does what is due, in threads that share the workers; what was done, and the processor time that it took."""
    threads = CONNECTIONS // PROCESSES
    heaps: list[list[Event]] = [[] for _ in range(threads)]
    for event in events:
        # A run and its supervisor are two processes.
        heaps[(2 * event.worker + (event.what == "write")) % threads].append(event)
    done: list[Done] = []
    before = time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for one in [pool.submit(_thread, its, heap, until, again, done) for heap in heaps if heap]:
            one.result()
    return done, time.process_time() - before


def _thread(its: Sequence[Worker], heap: list[Event], until: float, again: bool, done: list[Done]) -> None:
    heapify(heap)
    while heap and heap[0].due < until:
        event = heappop(heap)
        time.sleep(max(0.0, event.due - time.monotonic()))
        if time.monotonic() >= until:
            done.append(Done(event.what, event.due, None))
            continue
        worker, next_due = its[event.worker], None
        match event.what:
            case "write":
                next_due = worker.write()
            case "look":
                next_due = worker.look()
            case "renew":
                worker.renew()
                next_due = event.due + RENEW_EVERY
            case "claim":
                worker.claim()
            case "end":
                done.append(Done("claim", *worker.end()))
        done.append(Done(event.what, event.due, time.monotonic()))
        if again and next_due is not None:
            heappush(heap, event._replace(due=next_due))


def _latencies(its: Sequence[Done], seconds: float, until: float) -> dict[str, float]:
    late = [1000 * ((until if one.ended is None else one.ended) - one.due) for one in its]
    return {
        "a second": round(sum(one.ended is not None for one in its) / seconds, 1),
        "median ms": round(median(late), 1),
        "95% within ms": round(quantiles(late, n=20)[-1] if len(late) > 1 else late[0], 1),
    }


def _server_seconds(server: PostgresqlServer | None) -> float:
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
    return [int(one) for one in (process / "stat").read_text().rpartition(")")[2].split()[11:15]]
