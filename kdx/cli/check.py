"""`kdx check`: compares the numbers in files with the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import FOUND, as_json, say
from kdx.cli.context import Answering
from kdx.cli.loaded_report import LoadedReport, table_names
from kdx.cli.options import OnlyTable
from kdx.cli.wording import count_of
from kdx.errors import KdxError
from kdx.report.check import FORMS, Comparison, FoundTable, compare, documents, find_tables, not_of_kdx, unread
from kdx.report.made_by import MadeBy
from kdx.report.quoted import Quoted, differences, find_quoted
from kdx.report.selection.joined import names as names_of
from kdx.report.table.table import Table
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.sanitize import sanitize_lines
from kdx.store.reading import grids


def check(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE… [SWEEP|GRID.yaml]…",
            autocompletion=completion.names,
            help="Files .json, .md or .tex with tables of kdx report; and sweeps, if not those that the tables name.",
        ),
    ],
    context: Answering,
    table: OnlyTable = None,
) -> None:
    """Check the numbers of a paper against the database.

    Each table is made again as the comment before it says (in JSON, its key made_by), and compared number by number,
    captions and notes as well; without a comment, as its label (tab:NAME) or title (**NAME**) says. A paper in LaTeX
    is read with what it inputs from its folder. A number in prose is compared where a comment with its kdx trace
    command stands behind it. Exit code 5 if a number differs from the database, or was not
    compared.

    Example: kdx check paper.tex

    Example: kdx check README.md docs/*.md

    Example: kdx check paper.tex quickstart
    """
    paths = [name for name in names if Path(name).suffix.lower() in FORMS]
    sweeps = [name for name in names if name not in paths]
    if not paths:
        raise KdxError(
            "there is no file to check",
            place=names[0],
            allowed="FILE.json of kdx report --json, or FILE.md or FILE.tex with tables of kdx report --format",
        )
    read = [document for path in paths for document in documents(Path(path))]
    files = [*{document.path.resolve(): document for document in read}.values()]  # what a paper inputs may be named too
    file = ", ".join(paths)
    with context.read() as database:
        known = table_names(grids(database))
        titles = [name for of_sweep in known.values() for name in of_sweep] + ([table] if table else [])
        in_file = find_tables(files, titles)
        for note in (*unread(files), *not_of_kdx(files, [*titles, *(each.name for each in in_file)])):
            say(f"note: {note}")
        quoted, unreadable = find_quoted(files)
        if not (in_file or quoted or unreadable):
            what = "this file" if len(paths) == 1 else "these files"
            hint = "kdx report --format latex, markdown or --json writes one"
            raise KdxError(f"there is no number of kdx in {what}", place=file, hint=hint)
        if table is not None and table not in (there := [each.name for each in in_file]):
            raise KdxError(f"there is no table `{table}`", place=file, allowed=list(dict.fromkeys(there)))
        tables = [(each, _made_by(each, sweeps, known)) for each in in_file if table in (None, each.name)]
        quotes = [(each, _of_place(each, sweeps, known)) for each in quoted if table in (None, each.table)]
        made = [*(how for _, how in tables), *(how for _, how in quotes)]
        reports = {_report_of(how): LoadedReport(database, _report_of(how), context) for how in made}
    now = {made_by: {each.layout.name: each for each in report.tables()} for made_by, report in reports.items()}
    compared = [
        (each, _compared(each, now[_report_of(how)][each.name], how))
        for each, how in tables
        if each.name in now[_report_of(how)]
    ]
    done = [each for each, _ in compared]
    missing = [each.name for each, _ in tables if each not in done]
    changes = [change for _, result in compared for change in result.changes]
    left_out = missing + [part for _, result in compared for part in result.left_out] + unreadable
    for each, how in quotes:
        try:
            changes += differences(each, _table(now[_report_of(how)], each.table).layout)
        except KdxError as fault:
            left_out.append(f"{each.place}: {fault.problem}")
    own = [part for _, result in compared for part in result.own]
    of_sweeps = list(dict.fromkeys(name for report in reports.values() for name in names_of(report.record)))
    record = {
        "files": paths,
        "sweep": ", ".join(of_sweeps),
        "tables": list(dict.fromkeys(each.name for each in done)),
        "numbers": sum(result.numbers for _, result in compared) + len(quotes),
        "differences": changes,
        "own": own,
        "not_compared": left_out,
    }

    def lines() -> Iterator[str]:
        for change in changes:
            what = change.key if change.key else "" if change.kind == "rows" else change.kind
            place = f"{change.path}:{change.line}:{change.column}: {change.table}"
            yield sanitize_lines(f"{place}: {f'{what} ' if what else ''}was {change.was}, is {change.now}")
        yield from (sanitize_lines(f"not compared: {part}") for part in left_out)

    context.answer(record, lines)
    also = f"; {count_of(len(own), 'caption or note')} of the author's own" if own else ""
    of_tables = dict.fromkeys([*(each.name for each in done), *(each.table for each, _ in quotes)])
    values = f"{file}: {record['numbers']} numbers of {', '.join(of_tables)}"
    if not changes and not left_out:
        say(f"{values} match sweep {', '.join(of_sweeps)}{also}")
        return
    again = " && ".join(f"{replace(made_by, statistics=False)}{context.options}" for made_by in reports)
    differ = f"{len(changes)} differ{'s' * (len(changes) == 1)}" if changes else "they match"
    if left_out:
        differ += f", {count_of(len(left_out), 'part')} could not be compared"
    say(f"{values} compared, {differ}{also}; as they are now: {again}")
    raise typer.Exit(FOUND)


def _made_by(in_file: FoundTable, sweeps: Sequence[str], known: Mapping[str, Sequence[str]]) -> MadeBy:
    """Return how a table of a file is made again: as its comment says, of the sweeps that the command names."""
    of_name = tuple(name for name, titles in known.items() if in_file.name in titles)[:1]
    made_by = in_file.made_by or MadeBy(of_name, in_file.name, statistics=True)
    recorded = made_by.sweeps if set(made_by.sweeps) <= known.keys() else of_name or made_by.sweeps
    return replace(made_by, sweeps=tuple(sweeps) or recorded)


def _of_place(quoted: Quoted, sweeps: Sequence[str], known: Mapping[str, Sequence[str]]) -> MadeBy:
    """Return how the table of a number in prose is made."""
    of_name = tuple(name for name, titles in known.items() if quoted.table in titles)[:1]
    return MadeBy(tuple(sweeps) or quoted.sweeps or of_name, quoted.table)


def _table(tables: Mapping[str, Table], name: str) -> Table:
    if name not in tables:
        raise KdxError(f"there is no table `{name}`")
    return tables[name]


def _report_of(made_by: MadeBy) -> MadeBy:
    """Return what a table shares with others that are built in one go."""
    return replace(made_by, table=None, statistics=False, notes="short")


def _compared(in_file: FoundTable, now: Table, made_by: MadeBy) -> Comparison:
    """Return the comparison with what the table is now; without a comment, with the notes that fit better."""
    suffix = in_file.document.path.suffix.lower()
    if suffix == ".json":
        return compare(in_file, as_json(to_json(now)))
    write = to_latex if suffix == ".tex" else to_markdown
    full = [made_by.notes == "full"] if in_file.made_by else [False, True]
    texts = [write(now, statistics=made_by.statistics, full=is_full) for is_full in full]
    return min((compare(in_file, text) for text in texts), key=lambda comparison: len(comparison.changes))
