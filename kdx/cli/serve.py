"""`kdx serve`: shows sweeps, their tables and their runs in a browser, while they train.

Each page is read from the database when it is asked for; between two questions nothing is done. The parts of a report,
which take longest, are kept until its runs have come further, and are not made again for a while after they were made.
"""

import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from threading import Lock
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import typer
from markupsafe import Markup

from kdx.cli.console import say
from kdx.cli.context import Context, InDatabase
from kdx.cli.logs import log_end
from kdx.cli.report import LoadedReport
from kdx.cli.shown import shown_run
from kdx.cli.status import SweepStatus, overview, states, statuses, time_left
from kdx.errors import KdxError
from kdx.report.figures.plot import curves_plot
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper, shipped
from kdx.report.papers.verdicts import answers
from kdx.report.writers.html.learning import curves_wanted
from kdx.report.writers.html.page import Linked, claims_part, curves_part, live_page, report_part
from kdx.store.database import Database
from kdx.store.find import run_number, sweep_named
from kdx.store.reading import curves_of, load_sweep, runs
from kdx.store.records import ENDED


def serve(
    context: InDatabase,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Listen on this port; 0 takes a free one.")
    ] = 8123,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Listen on this address; 0.0.0.0 admits other machines, without a password.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Show sweeps in a browser while they train.

    Progress, tables, curves, claims, runs with their logs; nothing can be changed there. Ctrl-C ends it.

    Example: kdx serve --db runs.db
    """
    with context.read():  # a database that cannot be read is refused at once
        pass
    with server(Pages(context), host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        say(f"{context.db} at http://{shown}:{listening.server_port}; Ctrl-C ends it")
        listening.serve_forever()


LEAST_AGE = 5.0
"""Seconds for which a report is not made anew; longer by ten times the seconds that it took."""
_LOG = 100_000
"""Bytes of the end of a log that are shown."""


class _Kept(NamedTuple):
    """A part of a report, and when it may be made anew."""

    part: Markup
    revision: str
    """A hash of the runs that it was made of, and of how far they were."""
    until: float


class Pages:
    """Makes the pages of a database."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    def page(self, path: str, *, whole: bool) -> str | None:
        """Return the page at a path, None if there is none.

        Args:
            whole: whether the report belongs to it, or only what changes all the time.

        Raises:
            KdxError: the database cannot be read, or has no such sweep or run.
        """
        kind, _, name = path.strip("/").partition("/")
        name = unquote(name)
        # One report is made at a time. Who waits for it holds no lock on the database, which would stop a sweep.
        with self._lock if whole else nullcontext(), self._context.read() as database:
            if not kind:
                return self._sweeps(database)
            if kind == "sweep" and name:
                return self._sweep(database, name, whole=whole)
            if kind == "claims" and name:
                return self._claims(database, name, whole=whole)
            if kind == "run" and (number := run_number(name)) is not None:
                return self._run(database, number, whole=whole)
        return None

    def _sweeps(self, database: Database) -> str:
        there = statuses(database)
        headers = ("sweep", "done", "states", "time left", "tags")
        rows = [_row("sweep", *overview(each)) for each in there]
        lists = [{"title": "", "headers": headers, "rows": rows}]
        working = [worker for each in there for worker in _workers(each)]
        lead = "" if there else "No sweep is recorded here yet; kdx sweep GRID records one."
        return live_page(self._context.db, _LINKS, lead=lead, lists=[*lists, *_working(working)])

    def _sweep(self, database: Database, name: str, *, whole: bool) -> str:
        sweep_named(database, name)
        status = next(each for each in statuses(database) if each.summary.name == name)
        part, revision = self._part(f"sweep {name}", database, name, self._report, whole=whole)
        total = sum(status.summary.counts.values())
        ended = sum(count for state, count in status.summary.counts.items() if state in ENDED)
        left = time_left(status)
        planned = runs(database, status.summary.id)
        scores = {run.id: "" if run.test_score is None else f"{run.test_score:.4g}" for run in planned}
        listed = [
            _row("run", run.id, run.seed, run.state, run.progress_step, run.error or scores[run.id])
            for run in planned
            if run.state not in ENDED or run.error
        ]
        lists = _working(_workers(status))
        if listed:
            headers = ("run", "seed", "state", "step", "score, or why not")
            lists.append({"title": "Runs that have not ended, or failed", "headers": headers, "rows": listed})
        return live_page(
            name,
            [*_LINKS, ("Claims", _address("claims", name))],
            lead="; ".join(filter(None, [states(status), left])),
            done=ended,
            total=total,
            lists=lists,
            report=part,
            revision=revision,
        )

    def _claims(self, database: Database, name: str, *, whole: bool) -> str:
        part, revision = self._part(f"claims {name}", database, name, self._verdicts, whole=whole)
        links = [*_LINKS, (name, _address("sweep", name))]
        lead = "No paper that comes with kdx has a claim that these runs test." if whole and not part else ""
        return live_page(f"Claims, by the runs of {name}", links, lead=lead, report=part, revision=revision)

    def _run(self, database: Database, run_id: int, *, whole: bool) -> str:
        shown = shown_run(database, run_id)
        sweeps = [each["sweep"] for each in shown.record["sweeps"]]
        links = [*_LINKS, *((sweep, _address("sweep", sweep)) for sweep in sweeps)]
        log = log_end(database, run_id, _LOG)
        drawn = curves_of(database, [run_id], shown.panels[0].metrics).get(run_id, {})
        plots = (curves_plot(name, [(name, curve)]) for name, curve in drawn.items())
        return live_page(
            shown.title,
            links,
            texts=[("Record", "\n".join(shown.lines())), ("Log", log)],
            report=curves_part(plots) if whole else Markup(),
            revision=f"{shown.record['step']} {shown.record['state']}",
        )

    def _part(
        self,
        key: str,
        database: Database,
        name: str,
        make: Callable[[Database, str], Markup],
        *,
        whole: bool,
    ) -> tuple[Markup, str]:
        """Return a part of a report, and what it was made of; only a `whole` page has it made."""
        recorded = runs(database, sweep_named(database, name))
        now = [(run.id, run.state, run.progress_step, run.invalidated) for run in recorded]
        revision = hashlib.sha256(repr(now).encode()).hexdigest()[:16]
        kept = self._kept.get(key)
        if kept and (kept.revision == revision or self._clock() < kept.until):
            return (kept.part if whole else Markup()), kept.revision
        if not whole:
            return Markup(), revision
        began = self._clock()
        part = make(database, name)
        took = self._clock() - began
        self._kept[key] = _Kept(part, revision, self._clock() + max(LEAST_AGE, 10 * took))
        return part, revision

    def _report(self, database: Database, name: str) -> Markup:
        loaded = LoadedReport(database, MadeBy((name,), None), self._context)
        record = loaded.record
        drawn = curves_of(database, [run.id for run in record.runs], curves_wanted(record))
        return report_part(loaded.tables(), record, drawn)

    def _verdicts(self, database: Database, name: str) -> Markup:
        sweep = load_sweep(database, name)
        decided = []
        for paper in (load_paper(each, [sweep]) for each in shipped()):
            tested = [each for each in answers(paper.claims, [sweep]) if each.tested]
            if tested:
                decided.append((paper, tested))
        return claims_part(decided)


_LINKS = [("Sweeps", "/")]


def _address(kind: str, name: object) -> str:
    return f"/{kind}/{quote(str(name), safe='/')}"


def _row(kind: str, name: object, *others: object) -> list[Linked]:
    """Return a row of a list that leads to the page of its first entry."""
    return [(str(name), _address(kind, name)), *((str(each), "") for each in others)]


def _workers(status: SweepStatus) -> list[list[Linked]]:
    return [_row("run", *worker.row) for worker in status.working]


def _working(rows: Sequence[Sequence[Linked]]) -> list[dict[str, Any]]:
    headers = ("run", "step", "for", "worker")
    return [{"title": "At work", "headers": headers, "rows": rows}] if rows else []


def server(pages: Pages, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server that listens at an address.

    Raises:
        KdxError: the port is taken, or the address is none of this machine.
    """

    class Handler(_Handler):
        served, named = pages, host

    class Server(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in host else ThreadingHTTPServer.address_family
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            # A tab that is closed before it was answered is no fault.
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    try:
        return Server((host, port), Handler)
    except OSError as error:
        hint = "--port 0 takes a free port; --host names an address of this machine"
        raise KdxError(f"cannot listen at {host}, port {port}: {error.strerror}", hint=hint) from error


class _Handler(BaseHTTPRequestHandler):
    """Answers one question."""

    served: Pages
    named: str
    protocol_version = "HTTP/1.1"
    server_version = "kdx"
    sys_version = ""
    timeout = 60
    """Seconds after which a connection without questions is closed."""

    def do_GET(self) -> None:
        try:
            if not self._is_asked_by_its_name():
                # Else a page of anybody, whose name leads to this machine, could read the answers.
                problem = f"this is not {self.headers.get('Host')}; --host says by which address kdx serve is asked\n"
                self._answer(HTTPStatus.MISDIRECTED_REQUEST, problem)
                return
            address = urlsplit(self.path)
            page = self.served.page(address.path, whole=address.query != "progress")
            if page is None:
                self._answer(HTTPStatus.NOT_FOUND, "there is no such page; the first is /\n")
            else:
                self._answer(HTTPStatus.OK, page, "text/html")
        except KdxError as error:
            self._answer(HTTPStatus.NOT_FOUND, f"{error}\n")
        except ValueError as error:  # of an address that is none
            self._answer(HTTPStatus.BAD_REQUEST, f"{error}\n")

    do_HEAD = do_GET

    def _is_asked_by_its_name(self) -> bool:
        if self.named in ("0.0.0.0", "::"):
            return True
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        return host in (self.named, "localhost", "127.0.0.1", "::1")

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a page that is open asks every few seconds."""
