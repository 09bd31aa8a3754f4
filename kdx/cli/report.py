"""`kdx report`: shows the tables of a sweep."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.options import (
    DATABASE,
    Against,
    Db,
    Files,
    Format,
    Json,
    OnlyTable,
    PairedAr,
    TableFormat,
    Tables,
    in_database_with_components,
    resume,
    retry_cancelled,
    retry_failed,
)
from kdx.cli.sweep_argument import load_together, plans_in_files
from kdx.cli.translations import TEXTS, translations_of
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.selection.cells import State
from kdx.report.selection.joined import names
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables as tables_of
from kdx.report.writers.csv import to_csv
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import PREAMBLE, to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.report.writers.text import TextTable
from kdx.store.database import open_database
from kdx.store.reading import curves, outputs_of
from kdx.store.records import SweepRecord

if TYPE_CHECKING:
    from kdx.report.writers.html.learning import Curves


class Notes(StrEnum):
    """The length of the notes below a table."""

    SHORT = "short"
    FULL = "full"


def report(
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SWEEP",
            autocompletion=completion.sweeps_and_grids,
            help="Names of sweeps, or their grid files; the one planned last if not said. Of several, tables have the"
            " cells of all, and `sweep` is a factor.",
        ),
    ] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    format: TableFormat = Format.TEXT,
    json: Json = False,
    table: OnlyTable = None,
    tables: Tables = None,
    against: Against = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Each cell's statistics, and differences.")] = False,
    paired_ar: PairedAr = False,
    notes: Annotated[Notes, typer.Option("--notes", help="The notes below a table.")] = Notes.SHORT,
) -> None:
    """Print the tables of a sweep, also as LaTeX, HTML or CSV.

    Each cell has the test score of its best-validation seed, and the
    spread over seeds.

    Example: kdx report quickstart --format latex > table.tex

    Example: kdx report --tables both.yaml monday tuesday
    """
    named = sweeps or []
    plans = plans_in_files(named, "report")
    drawn: Curves = {}
    randomise = None
    # Everything is read from one state of the database.
    with open_database(db, write=False) as database, database.read():
        record = load_together(database, named, plans, db, join=tables is not None)
        where = {name: in_database_with_components(db, database, name) for name in names(record)}
        if format is Format.HTML and not json:
            # NumPy, which no other format needs for a sweep without statistics.
            from kdx.report.writers.html.learning import curves_wanted

            wanted = curves_wanted(record)
            drawn = {
                run: each for one in record.joins or (record,) for run, each in curves(database, one.id, wanted).items()
            }
        if paired_ar:
            lines = outputs_of(database, [run.id for run in selected_runs(record).values()], TEXTS)
            randomise = translations_of(record, lines).randomise
    paper = None
    if against:
        paper = load_paper(against, [record])
    record = with_tables_of(tables, record) if tables else record
    shown = tables_of(record, db, only=table, paper=paper, randomise=randomise)
    made_by = MadeBy(
        sweeps=names(record),
        tables=str(tables) if tables else None,
        against=against,
        statistics=statistics,
        paired_ar=paired_ar,
        notes=notes.value,
    )
    if json:
        written = [to_json(one, str(replace(made_by, table=one.layout.name))) for one in shown]
        out_json({"sweep": record.name, "sweeps": names(record), "tables": written})
    else:
        _write(shown, record, drawn, format, made_by)
    say(_closing(record, shown, where))


def _write(tables: tuple[Table, ...], sweep: SweepRecord, curves: "Curves", format: Format, made_by: MadeBy) -> None:
    statistics, full = made_by.statistics, made_by.notes == "full"
    if format in (Format.MARKDOWN, Format.LATEX):
        write = to_markdown if format is Format.MARKDOWN else to_latex
        texts = [
            write(one, statistics=statistics, full=full, made_by=str(replace(made_by, table=one.layout.name)))
            for one in tables
        ]
        out((PREAMBLE if format is Format.LATEX else "") + "\n".join(texts))
    elif format is Format.CSV:
        out(to_csv(tables, sweep))
    elif format is Format.HTML:
        # Jinja2 and the libraries of the page, which no other format needs.
        from kdx.report.writers.html.page import to_html

        out(to_html(tables, sweep, curves))
    else:
        for one in tables:
            out(TextTable(one, statistics=statistics, full=full))
            out("")


def _closing(sweep: SweepRecord, tables: tuple[Table, ...], where: Mapping[str, str]) -> str:
    """The last line: counts of cells, each counted once, and the next command."""
    others = (State.DIVERGED, State.OUT_OF_MEMORY, State.FAILED, State.INVALIDATED)
    cells = {cell.id: cell for one in tables for cell in one.layout.cells}.values()
    states = Counter(cell.state for cell in cells)
    counts = [f"{states[State.VALUE]} with a score"]
    counts += [f"{states[state]} {state}" for state in others if states[state]]
    holes = states[State.HOLE]
    counts += [f"{holes} hole{'s' if holes > 1 else ''}"] if holes else []
    records = {key: record for one in tables for key, record in one.layout.records.items()}
    following = ""
    for command, left in (
        # What is left of a cell with failed runs may be paused.
        (resume, [cell for cell in cells if cell.unfinished > cell.cancelled and not cell.failed]),
        (retry_failed, [cell for cell in cells if cell.failed]),
        (retry_cancelled, [cell for cell in cells if cell.cancelled]),
    ):
        if left and not following:
            of = {name for cell in left for name in records[cell.id].sweeps or names(sweep)}
            following = f"; next: {' && '.join(command(name, where[name]) for name in names(sweep) if name in of)}"
    return f"{len(cells)} cell{'' if len(cells) == 1 else 's'}: {', '.join(counts)}{following}"
