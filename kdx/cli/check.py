"""`kdx check`: compares the numbers in a file with the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.options import DATABASE, Against, Db, Files, Json, OfSweeps, OnlyTable, PairedAr, Tables, in_database
from kdx.cli.sweep_argument import load_together, plans_in_files, table_names
from kdx.cli.translations import TEXTS, translations_of
from kdx.errors import KdxError
from kdx.grid.table_layout import Address
from kdx.report.check.check import asked_in, compare_file, sweeps_of_tables
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.selection.joined import names
from kdx.report.statistics.randomisation import Randomisation
from kdx.report.table.build import Randomise
from kdx.report.table.build import tables as tables_of
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.sanitize import sanitize_lines
from kdx.shell import kdx_command, shell_word
from kdx.store.database import open_database
from kdx.store.reading import grids, load_sweep, outputs_of


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .json, .md or .tex with tables of kdx report.")],
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SWEEP|GRID.yaml]…",
            autocompletion=completion.sweeps_and_grids,
            help="Sweeps, or their grid files; if not said, those whose tables the file has by their names.",
        ),
    ] = None,
    sweep: OfSweeps = None,
    tables: Tables = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
    table: OnlyTable = None,
    against: Against = None,
    paired_ar: PairedAr = False,
) -> None:
    """Check the numbers of a table or a paper against the database.

    Each table is compared with the sweep that has a table of its name,
    which stands in its label (tab:NAME), its title (**NAME**) or its
    JSON; captions and notes as well. A paper in LaTeX is read with what
    it inputs from its folder. Exit code 5 if a number differs from the
    database, or was not compared.

    Example: kdx check paper.tex

    Example: kdx check paper.tex quickstart
    """
    # The report is made again with the options of the file.
    asked = asked_in(file)
    named, against = (*(sweeps or ()), *(sweep or ())) or asked.sweeps, against or asked.paper
    plans = plans_in_files(named, f"check {shell_word(str(file))}")
    texts: dict[str, dict[int, list[str]]] = {}
    with open_database(db, write=False) as database, database.read():
        known = table_names(grids(database))
        if table:
            known = {name: [table] for name, titles in known.items() if table in titles}
        of_file = () if named or tables else sweeps_of_tables(file, known)
        if of_file:
            records = [load_sweep(database, name) for name in of_file]
        else:
            records = [load_together(database, named, plans, db, join=tables is not None)]
        if paired_ar or asked.randomisation:
            texts = {
                record.name: outputs_of(database, [run.id for run in selected_runs(record).values()], TEXTS)
                for record in records
            }
    paper = load_paper(against, records) if against else None
    shown: dict[str, Table] = {}
    for record in records:
        randomise: Randomise | None = None
        if texts:
            randomise = translations_of(record, texts[record.name]).randomise
            randomise = randomise if paired_ar else _where_possible(randomise)
        whole = with_tables_of(tables, record) if tables else record
        rendered = tables_of(whole, db, only=table, paper=paper, randomise=randomise)
        shown = {each.layout.name: each for each in rendered} | shown
    compared_sweeps = [name for record in records for name in names(record)]
    others = {name: titles for name, titles in known.items() if name not in compared_sweeps}
    alone = table is not None or tables is not None
    found = compare_file(file, [*shown.values()], partly=table is not None, others={} if alone else others)
    of_sweeps = ", ".join(compared_sweeps)
    if json:
        compared = {"file": str(file), "sweep": of_sweeps, "tables": found.tables, "numbers": found.numbers}
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
        say(f"{compared_values} match sweep {of_sweeps}{absent}")
        return
    options = (f" --tables {shell_word(str(tables))}" if tables else "") + in_database(db)
    reports = " && ".join(kdx_command("report", *names(record), options=options) for record in records)
    differ = f"{len(found.changes)} differ{'s' * (len(found.changes) == 1)}" if found.changes else "they match"
    if found.left_out:
        parts = len(found.left_out)
        differ += f", {parts} part{'' if parts == 1 else 's'} could not be compared"
    say(f"{compared_values} compared, {differ}{absent}; as they are now: {reports}")
    raise typer.Exit(FOUND)


def _where_possible(randomise: Randomise) -> Randomise:
    """Leaves out a randomisation that cannot be made, as without the corpus, and says so."""

    def attempted(layout: Layout, differences: Sequence[Difference]) -> Mapping[Address, Randomisation]:
        try:
            return randomise(layout, differences)
        except KdxError as error:
            say(f"BLEU is not compared over sentences: {error}")
            return {}

    return attempted
