"""`kdx check`: compares the numbers in a file with the database."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdx.cli.console import out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.options import DATABASE, Against, Db, Files, Json, OfSweeps, OnlyTable, PairedAr, Tables, in_database
from kdx.sanitize import sanitize_lines
from kdx.shell import kdx_command, shell_word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdx.grid.table_layout import Address
    from kdx.report.statistics.randomisation import Randomisation
    from kdx.report.table.build import Randomise
    from kdx.report.table.comparisons import Difference
    from kdx.report.table.layout import Layout


def check(
    file: Annotated[
        Path, typer.Argument(envvar="KDX_CHECK", metavar="FILE", help="A .json, .md or .tex with tables of kdx report.")
    ],
    sweep: OfSweeps = None,
    tables: Tables = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
    table: OnlyTable = None,
    against: Against = None,
    paired_ar: PairedAr = False,
) -> None:
    """Compare the numbers, captions and notes in a file that kdx report wrote, or in a paper, with the database.

    Without --sweep, a FILE of kdx report --json is compared with the sweeps that it names.
    Exit code 5 when one of them no longer is what the database says, or cannot be compared.

    Example: kdx check paper.tex --sweep quickstart
    """
    from dataclasses import asdict

    from kdx.cli.sweep_argument import load_together, plans_in_files
    from kdx.report.check.check import asked_in, compare_file
    from kdx.report.papers.paper_file import load_paper
    from kdx.report.selection.best_seed import selected_runs
    from kdx.report.selection.joined import names
    from kdx.report.table.build import tables as tables_of
    from kdx.report.table.tables_file import with_tables_of
    from kdx.store.database import open_database
    from kdx.store.reading import outputs_of

    # The report is made again with the options of the file.
    asked = asked_in(file)
    named, against = sweep or asked.sweeps, against or asked.paper
    plans = plans_in_files(named, f"check {shell_word(str(file))}")
    randomise: Randomise | None = None
    with open_database(db, write=False) as database, database.read():
        record = load_together(database, named, plans, db, join=tables is not None)
        if paired_ar or asked.randomisation:
            from kdx.cli.translations import TEXTS, translations_of

            lines = outputs_of(database, [run.id for run in selected_runs(record).values()], TEXTS)
            randomise = translations_of(record, lines).randomise
            randomise = randomise if paired_ar else _where_possible(randomise)
    paper = load_paper(against, [record]) if against else None
    record = with_tables_of(tables, record) if tables else record
    shown = tables_of(record, db, only=table, paper=paper, randomise=randomise)
    found = compare_file(file, shown, partly=table is not None)
    if json:
        compared = {"file": str(file), "sweep": record.name, "tables": found.tables, "numbers": found.numbers}
        differences = [asdict(one) for one in found.changes]
        out_json(compared | {"differences": differences, "not_compared": found.left_out})
    else:
        for one in found.changes:
            what = f"{one.what} " if one.what else ""
            out(sanitize_lines(f"{one.table}: {one.place}: {what}was {one.was}, is {one.now}"))
        for part in found.left_out:
            out(sanitize_lines(f"not compared: {part}"))
    compared_values = f"{file}: {found.numbers} values of {', '.join(found.tables)}"
    absent = f"; not in it: {', '.join(found.absent)}" if found.absent else ""
    if not found.changes and not found.left_out:
        say(f"{compared_values} match sweep {record.name}{absent}")
        return
    options = (f" --tables {shell_word(str(tables))}" if tables else "") + in_database(db)
    again = kdx_command("report", *names(record), options=options)
    differ = f"{len(found.changes)} differ" if found.changes else "they match"
    if found.left_out:
        parts = len(found.left_out)
        differ += f", {parts} part{'' if parts == 1 else 's'} could not be compared"
    say(f"{compared_values} compared, {differ}{absent}; as they are now: {again}")
    raise typer.Exit(FOUND)


def _where_possible(randomise: "Randomise") -> "Randomise":
    """Leaves out a randomisation that cannot be made, as without the corpus, and says so."""
    from kdx.errors import KdxError

    def attempted(layout: "Layout", differences: "Sequence[Difference]") -> "Mapping[Address, Randomisation]":
        try:
            return randomise(layout, differences)
        except KdxError as error:
            say(f"BLEU is not compared over sentences: {error}")
            return {}

    return attempted
