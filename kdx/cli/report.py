"""`kdx report`: shows the tables of a sweep."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.made_tables import MadeTables
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
from kdx.cli.sweep_argument import plans_in_files
from kdx.report.made_by import MadeBy
from kdx.report.selection.cells import State
from kdx.report.selection.joined import names
from kdx.report.table.table import Table
from kdx.report.writers.csv import to_csv
from kdx.report.writers.html.learning import Curves, curves_wanted
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import PREAMBLE, to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.report.writers.text import TextTable
from kdx.store.database import open_database
from kdx.store.reading import curves
from kdx.store.records import SweepRecord


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
    made_by = MadeBy(tuple(named), table, str(tables) if tables else None, against, statistics, paired_ar, notes.value)
    drawn: Curves = {}
    # Everything is read from one state of the database.
    with open_database(db, write=False) as database, database.read():
        loaded = MadeTables(database, made_by, plans, db)
        record = loaded.record
        where = {name: in_database_with_components(db, database, name) for name in names(record)}
        if format is Format.HTML and not json:
            wanted = curves_wanted(record)
            drawn = {
                run: by_metric
                for sweep in record.joins or (record,)
                for run, by_metric in curves(database, sweep.id, wanted).items()
            }
    shown = loaded.tables()
    made_by = replace(made_by, sweeps=names(record))
    if json:
        written = [to_json(each, str(replace(made_by, table=each.layout.name))) for each in shown]
        out_json({"sweep": record.name, "sweeps": names(record), "tables": written})
    else:
        _write(shown, record, drawn, format, made_by)
    say(_closing(record, shown, where))


def _write(tables: tuple[Table, ...], sweep: SweepRecord, curves: Curves, format: Format, made_by: MadeBy) -> None:
    statistics, full = made_by.statistics, made_by.notes == "full"
    if format in (Format.MARKDOWN, Format.LATEX):
        write = to_markdown if format is Format.MARKDOWN else to_latex
        texts = [
            write(table, statistics=statistics, full=full, made_by=str(replace(made_by, table=table.layout.name)))
            for table in tables
        ]
        out((PREAMBLE if format is Format.LATEX else "") + "\n".join(texts))
    elif format is Format.CSV:
        out(to_csv(tables))
    elif format is Format.HTML:
        # Jinja2 and the libraries of the page, which no other format needs.
        from kdx.report.writers.html.page import to_html

        out(to_html(tables, sweep, curves))
    else:
        for table in tables:
            out(TextTable(table, statistics=statistics, full=full))
            out("")


def _closing(sweep: SweepRecord, tables: tuple[Table, ...], where: Mapping[str, str]) -> str:
    """The last line: counts of cells, each counted once, and the next command."""
    others = (State.DIVERGED, State.OUT_OF_MEMORY, State.FAILED, State.INVALIDATED)
    cells = {cell.id: cell for table in tables for cell in table.layout.cells}.values()
    states = Counter(cell.state for cell in cells)
    counts = [f"{states[State.VALUE]} with a score"]
    counts += [f"{states[state]} {state}" for state in others if states[state]]
    holes = states[State.HOLE]
    counts += [f"{holes} hole{'s' if holes > 1 else ''}"] if holes else []
    records = {key: record for table in tables for key, record in table.layout.records.items()}
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
