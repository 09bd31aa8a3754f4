"""`kdx report`: a sweep's tables, and what the runs say of a paper's claims."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from kdx.cli.check import Check, checked
from kdx.cli.console import out, out_json, out_parts, say
from kdx.cli.options import DATABASE, Db, Json, in_database

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdx.grid.plan import Plan
    from kdx.report.papers.verdicts import Answer, Finding
    from kdx.report.render.html.page import Curves
    from kdx.report.table.table import Table
    from kdx.store.database import Database
    from kdx.store.records import SweepRecord

SHIPPED = "all"
"""`--claims` without a file: those of every paper inside kdx."""


class Format(StrEnum):
    """What a table is written as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    HTML = "html"


class Notes(StrEnum):
    """How much is said below a table."""

    SHORT = "short"
    FULL = "full"


class Report(TyperCommand):
    """The command, whose `--claims` may stand without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Bare `--claims`, at the end or before an option, asks for every paper inside kdx."""
        bare = [
            index
            for index, word in enumerate(args)
            if word == "--claims" and (index + 1 == len(args) or args[index + 1].startswith("-"))
        ]
        for index in reversed(bare):
            args = [*args[: index + 1], SHIPPED, *args[index + 1 :]]
        return super().parse_args(ctx, args)


def report(
    sweep: Annotated[
        str | None, typer.Argument(help="Name of a sweep, or its grid file; the one planned last if not said.")
    ] = None,
    db: Db = DATABASE,
    format: Annotated[Format, typer.Option("--format", envvar="KDX_FORMAT", help="How tables are written.")] = (
        Format.TEXT
    ),
    json: Json = False,
    table: Annotated[
        str | None, typer.Option("--table", envvar="KDX_TABLE", help="Only the table of this name.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            envvar="KDX_AGAINST",
            metavar="PAPER",
            help="Published values beside ours: tsai2019, shaw2018, or a file.",
        ),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", envvar="KDX_STATISTICS", help="Each cell's statistics, and differences.")
    ] = False,
    paired_ar: Annotated[
        bool,
        typer.Option(
            "--paired-ar",
            envvar="KDX_PAIRED_AR",
            help="Differences of BLEU with translations exchanged at random, as sacrebleu's --paired-ar.",
        ),
    ] = False,
    notes: Annotated[
        Notes, typer.Option("--notes", envvar="KDX_NOTES", help="What is said below a table.")
    ] = Notes.SHORT,
    claims: Annotated[
        str | None,
        typer.Option(
            "--claims",
            envvar="KDX_CLAIMS",
            metavar="PAPER",
            help="Instead of tables, what the runs of all sweeps, or of SWEEP, say of a paper's claims: tsai2019, "
            "shaw2018 or a file; of all papers if none is named.",
        ),
    ] = None,
    check: Check = None,
) -> None:
    """Show a sweep's tables: per cell, the test score of the best-validation seed, and the spread over seeds.

    With --check, exit code 5 when a number in FILE no longer is what the database says.

    Example: kdx report quickstart --format latex > table.tex
    """
    from kdx.store.database import open_database
    from kdx.store.reader import load_sweeps

    if claims is not None:
        of_tables = {
            "--check": check,
            "--table": table,
            "--against": against,
            "--statistics": statistics,
            "--paired-ar": paired_ar,
        }
        if given := [option for option, value in of_tables.items() if value]:
            from kdx.errors import KdxError

            raise KdxError(
                f"--claims answers claims instead of showing tables, for which {', '.join(given)} would be",
                hint=f"leave --claims or {', '.join(given)} out",
            )
        plan = _grid_of(sweep)
        with open_database(db, write=False) as database, database.read():
            sweeps = load_sweeps(database) if sweep is None else (_record(database, sweep, plan, db),)
        _claims(claims, sweeps, format, json, db)
        return
    from kdx.report.selection.cells import selected_runs
    from kdx.report.table.build import tables
    from kdx.store.reader import curves, outputs_of

    shows_randomisation = False
    if check:
        from kdx.report.check.check import asked_in

        # What the file shows is made again.
        asked = asked_in(check)
        sweep, against, shows_randomisation = sweep or asked.sweep, against or asked.paper, asked.randomisation
    paper = _paper(against) if against else None
    plan = _grid_of(sweep)
    drawn: Curves = {}
    lines: dict[int, list[str]] = {}
    # All of it as one state of the database.
    with open_database(db, write=False) as database, database.read():
        record = _record(database, sweep, plan, db)
        if format is Format.HTML and not (json or check):
            from kdx.report.render.html.page import curves_wanted

            drawn = curves(database, record.id, curves_wanted(record))
        if paired_ar or shows_randomisation:
            lines = outputs_of(database, selected_runs(record), "test/translations")
    shown = tables(record, db)
    full = notes is Notes.FULL
    if table is not None:
        shown = _named(shown, table)
    if paper:
        from dataclasses import replace

        from kdx.report.papers.published_comparison import beside

        shown = tuple(replace(one, beside=beside(one, paper, record.cells)) for one in shown)
    if paired_ar or shows_randomisation:
        shown = _randomised(shown, record, lines, needed=paired_ar)
    if check:
        raise typer.Exit(checked(check, record.name, shown, json, db, partly=table is not None))
    if json:
        from kdx.report.render.json import to_json

        out_json({"sweep": record.name, "tables": [to_json(one) for one in shown]})
    elif format is Format.MARKDOWN:
        from kdx.report.render.markdown import to_markdown

        out("\n".join(to_markdown(one, statistics=statistics, full=full) for one in shown))
    elif format is Format.LATEX:
        from kdx.report.render.latex import PREAMBLE, to_latex

        out(PREAMBLE + "\n".join(to_latex(one, statistics=statistics, full=full) for one in shown))
    elif format is Format.CSV:
        from kdx.report.render.csv import to_csv

        out(to_csv(shown, record))
    elif format is Format.HTML:
        from kdx.report.render.html.page import to_html

        out_parts(to_html(shown, record, drawn))
    else:
        from kdx.report.render.text import TextTable

        for one in shown:
            out(TextTable(one, statistics=statistics, full=full))
            out("")
    say(_closing(record.name, shown, db))


def _claims(named: str, sweeps: "tuple[SweepRecord, ...]", format: Format, json: bool, db: str) -> None:
    from kdx.report.papers.paper_file import shipped
    from kdx.report.papers.verdicts import answers

    papers = [_paper(name) for name in (shipped() if named == SHIPPED else [named])]
    found = [(paper, answers(paper.claims, sweeps)) for paper in papers]
    told = [finding for _, those in found for one in those for finding in one.findings]
    if json:
        from kdx.report.render.json import claim_to_json

        out_json(
            {
                "sweeps": [one.name for one in sweeps],
                "papers": [
                    {
                        "paper": paper.name,
                        "title": paper.title,
                        "source": paper.source,
                        "claims": [claim_to_json(one) for one in those],
                    }
                    for paper, those in found
                ],
            }
        )
    elif format is Format.CSV:
        from kdx.report.render.csv import claims_to_csv

        out(claims_to_csv(found))
    elif format is Format.HTML:
        from kdx.report.render.html.page import claims_to_html

        out_parts(claims_to_html(found, _verdicts(told)))
    else:
        if format is Format.LATEX:
            from kdx.report.render.latex import PREAMBLE

            out(PREAMBLE)
        for paper, those in found:
            _out_claims(f"{paper.title or paper.name}. {paper.source}".rstrip(), those, format)
    say(_verdicts(told))


def _out_claims(title: str, answers: "Sequence[Answer]", format: Format) -> None:
    from kdx.report.render.listings import claim

    listings = [listing for one in answers for listing in claim(one)]
    if format is Format.MARKDOWN:
        from kdx.report.render.markdown import listing_to_markdown, plain

        out("\n".join((f"# {plain(title)}\n", *map(listing_to_markdown, listings))))
        return
    if format is Format.LATEX:
        from kdx.report.render.latex import listing_to_latex, tex

        out("\n".join((f"\\section*{{{tex(title)}}}", *map(listing_to_latex, listings))))
        return
    from kdx.report.render.text import TextListing
    from kdx.sanitize import sanitize

    out(f"{sanitize(title)}\n")
    for one in listings:
        out(TextListing(one))
        out("")


def _verdicts(findings: "Sequence[Finding]") -> str:
    from kdx.report.papers.verdicts import Verdict

    counts = {verdict: sum(one.verdict is verdict for one in findings) for verdict in Verdict}
    plural = {Verdict.HOLDS: "hold", Verdict.DOES_NOT_HOLD: "do not hold"}
    told = ", ".join(
        f"{count} {plural.get(verdict, verdict) if count != 1 else verdict}" for verdict, count in counts.items()
    )
    return f"{len(findings)} verdict{'' if len(findings) == 1 else 's'}, one a claim and setting: {told}"


def _paper(name: str) -> Any:
    from kdx.report.papers.paper_file import load_paper

    return load_paper(name)


def _randomised(
    tables: "tuple[Table, ...]", sweep: "SweepRecord", lines: "Mapping[int, Sequence[str]]", *, needed: bool
) -> "tuple[Table, ...]":
    """The tables with BLEU resampled wherever two selected runs are compared; references come from the corpus.

    Args:
        lines: run id → its translations.
        needed: whether it was asked for; if not, it is left out where it cannot be made.

    Raises:
        KdxError: a corpus is not here, or is not the one that the runs were tested on.
    """
    from collections.abc import Sequence
    from functools import cache

    from kdx.axes import Split
    from kdx.data.find_text import find_text
    from kdx.data.storage import data_home
    from kdx.errors import KdxError
    from kdx.grid.sections import Data
    from kdx.report.table.bleu_randomisation import Translated, compared, randomised

    @cache
    def references(data: Data) -> Sequence[str]:
        text = find_text(data, data_home())
        return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]

    runs = compared(tables)
    data = {cell.id: Data.model_validate(cell.spec["data"]) for cell in sweep.cells}
    try:
        translated = {
            run: Translated(
                lines[run], references(data[cell]), (sweep.provenance[run].definitions or {}).get("test/bleu", "")
            )
            for run, cell in runs.items()
            if run in lines
        }
        return tuple(randomised(table, translated) for table in tables)
    except KdxError as error:
        if needed:
            raise
        say(f"BLEU is not compared over sentences: {error}")
        return tables


def _grid_of(sweep: str | None) -> "Plan | None":
    """What a grid file plans; None: it is the name of a sweep, or none is said.

    Raises:
        KdxError: it is neither but a database.
    """
    import shlex
    from contextlib import suppress
    from pathlib import Path

    from kdx.errors import KdxError
    from kdx.store.version import application_of

    if sweep and sweep.endswith((".yaml", ".yml")):
        from kdx.grid.load import load_grid

        return load_grid(sweep)
    with suppress(OSError, ValueError):
        if sweep and Path(sweep).is_file() and application_of(Path(sweep)) is not None:
            raise KdxError(f"`{sweep}` is a database, not a sweep", hint=f"kdx report --db {shlex.quote(sweep)}")
    return None


def _record(database: "Database", sweep: str | None, plan: "Plan | None", db: str) -> "SweepRecord":
    """The sweep of this name, or of the grid in the file of this name, or the one planned last."""
    if plan and sweep:
        from kdx.cli.planned import record_of

        return record_of(database, plan, sweep, db)
    from kdx.store.reader import load_sweep

    return load_sweep(database, sweep)


def _named(tables: "tuple[Table, ...]", name: str) -> "tuple[Table, ...]":
    from kdx.errors import KdxError, did_you_mean

    names = [one.name for one in tables]
    if name not in names:
        raise KdxError(f"there is no table `{name}`", allowed=names, hint=did_you_mean(name, names))
    return tuple(one for one in tables if one.name == name)


def _closing(sweep: str, tables: "tuple[Table, ...]", db: str) -> str:
    """What the tables hold, each cell counted once, and what to type next."""
    import shlex
    from collections import Counter

    from kdx.report.selection.cells import State

    cells = {cell.id: cell for one in tables for cell in one.cells}.values()
    states = Counter(cell.state for cell in cells)
    told = [f"{states[State.VALUE]} with a score"]
    told += [f"{states[State.NOT_CONVERGE]} not converging"] if states[State.NOT_CONVERGE] else []
    told += [f"{states[state]} {state}" for state in (State.OUT_OF_MEMORY, State.FAILED) if states[state]]
    holes = states[State.HOLE]
    told += [f"{holes} hole{'s' if holes > 1 else ''}"] if holes else []
    where = shlex.quote(sweep) + in_database(db)
    following = ""
    if any(cell.unfinished for cell in cells):
        following = f"; next: kdx resume {where}"
    elif any(cell.failed for cell in cells):
        following = f"; next: kdx resume --failed {where}"
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}: {', '.join(told)}{following}"
