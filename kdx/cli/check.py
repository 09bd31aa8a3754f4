"""`kdx check`: compares the numbers in a file with the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import as_json, out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.made_tables import MadeTables
from kdx.cli.options import DATABASE, Against, Db, Files, Json, OnlyTable, PairedAr, Tables, in_database
from kdx.cli.sweep_argument import plans_in_files, table_names
from kdx.errors import KdxError
from kdx.report.check import Comparison, FoundTable, compare, documents, find_tables
from kdx.report.made_by import MadeBy
from kdx.report.selection.joined import names
from kdx.report.table.table import Table
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store.database import open_database
from kdx.store.reading import grids


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
    tables: Tables = None,
    db: Db = DATABASE,
    files_in: Files = None,
    json: Json = False,
    table: OnlyTable = None,
    against: Against = None,
    paired_ar: PairedAr = False,
) -> None:
    """Check the numbers of a table or a paper against the database.

    Each table is made again as the comment before it says (in JSON, its
    key made_by), and compared number by number, captions and notes as
    well; without a comment, as its label (tab:NAME) or title (**NAME**)
    says. A paper in LaTeX is read with what it inputs from its folder.
    Exit code 5 if a number differs from the database, or was not
    compared.

    Example: kdx check paper.tex

    Example: kdx check paper.tex quickstart
    """
    named = tuple(sweeps or ())
    plans_in_files(named, f"check {shell_word(str(file))}")
    files = documents(file)
    with open_database(db, write=False) as database, database.read():
        known = table_names(grids(database))
        titles = [title for of_sweep in known.values() for title in of_sweep] + ([table] if table else [])
        in_file = find_tables(files, titles)
        if table is not None and table not in (there := [written.name for written in in_file]):
            raise KdxError(f"there is no table `{table}`", place=str(file), allowed=list(dict.fromkeys(there)))
        in_file = [written for written in in_file if table in (None, written.name)]
        made_by = [_made_by(written, named, known, tables, against, paired_ar=paired_ar) for written in in_file]
        reports = {
            options: MadeTables(database, options, plans_in_files(options.sweeps, "check"), db)
            for options in dict.fromkeys(map(_of_report, made_by))
        }
    now = {
        options: {rendered.layout.name: rendered for rendered in report.tables()} for options, report in reports.items()
    }
    results: list[Comparison] = []
    compared: dict[str, None] = {}
    left_out: list[str] = []
    for written, options in zip(in_file, made_by, strict=True):
        shown = now[_of_report(options)].get(written.name)
        if shown is None:
            has_it = next((f" of sweep {name}" for name, of_sweep in known.items() if written.name in of_sweep), "")
            left_out.append(f"{written.name}{has_it}")
        else:
            compared[written.name] = None
            results.append(_compared(written, shown, options))
    changes = [change for result in results for change in result.changes]
    left_out += [part for result in results for part in result.left_out]
    own = [part for result in results for part in result.own]
    numbers = sum(result.numbers for result in results)
    of_sweeps = ", ".join(dict.fromkeys(name for report in reports.values() for name in names(report.record)))
    if json:
        out_json(
            {
                "file": str(file),
                "sweep": of_sweeps,
                "tables": list(compared),
                "numbers": numbers,
                "differences": [asdict(change) for change in changes],
                "own": own,
                "not_compared": left_out,
            }
        )
    else:
        for change in changes:
            what = change.key if change.key else "" if change.kind == "rows" else change.kind
            place = f"{change.path}:{change.line}:{change.column}: {change.table}"
            out(sanitize_lines(f"{place}: {f'{what} ' if what else ''}was {change.was}, is {change.now}"))
        for part in left_out:
            out(sanitize_lines(f"not compared: {part}"))
    compared_values = f"{file}: {numbers} numbers of {', '.join(compared)}"
    also = f"; captions and notes of the author's own: {len(own)}" if own else ""
    if not changes and not left_out:
        say(f"{compared_values} match sweep {of_sweeps}{also}")
        return
    commands = " && ".join(f"{options}{in_database(db)}" for options in reports)
    differ = f"{len(changes)} differ{'s' * (len(changes) == 1)}" if changes else "they match"
    if left_out:
        differ += f", {count_of(len(left_out), 'part')} could not be compared"
    say(f"{compared_values} compared, {differ}{also}; as they are now: {commands}")
    raise typer.Exit(FOUND)


def _made_by(
    table: FoundTable,
    named: Sequence[str],
    known: Mapping[str, Sequence[str]],
    tables: Path | None,
    against: str | None,
    *,
    paired_ar: bool,
) -> MadeBy:
    """How a table of a file is made again: as its comment says, unless the command says otherwise."""
    has_it = tuple(name for name, titles in known.items() if table.name in titles)[:1]
    made_by = table.made_by or MadeBy(has_it, table.name, statistics=True)
    if not set(made_by.sweeps) <= known.keys():
        made_by = replace(made_by, sweeps=has_it or made_by.sweeps)
    return replace(
        made_by,
        sweeps=tuple(named) or made_by.sweeps,
        tables=str(tables) if tables else made_by.tables,
        against=against or made_by.against,
        paired_ar=paired_ar or made_by.paired_ar,
    )


def _of_report(made_by: MadeBy) -> MadeBy:
    """What a table shares with others that are built in one go."""
    return replace(made_by, table=None, statistics=False, notes="short")


def _compared(table: FoundTable, now: Table, made_by: MadeBy) -> Comparison:
    """The comparison with what the table is now; without a comment, with the notes of which it lacks fewer."""
    suffix = table.document.path.suffix.lower()
    if suffix == ".json":
        return compare(table, as_json(to_json(now)))
    write = to_latex if suffix == ".tex" else to_markdown
    full = [made_by.notes == "full"] if table.made_by else [False, True]
    texts = [write(now, statistics=made_by.statistics, full=is_full) for is_full in full]
    comparisons = [compare(table, text) for text in texts]
    return min(comparisons, key=lambda comparison: (comparison.missing, -comparison.numbers))
