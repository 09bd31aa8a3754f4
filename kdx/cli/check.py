"""`kdx check`: compares the numbers in files with the database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import FOUND, as_json, say
from kdx.cli.context import Answering
from kdx.cli.named_runs import is_grid_file
from kdx.cli.options import OnlyTable
from kdx.cli.report import LoadedReport, table_names
from kdx.cli.wording import count_of
from kdx.errors import KdxError, in_a_line
from kdx.report.check.comparison import Change, Comparison, Kind, compare
from kdx.report.check.documents import FORMATS, FoundTable, documents, find_tables, not_of_kdx, unread
from kdx.report.check.quoted import Quoted, compare_quoted, find_quoted
from kdx.report.made_by import MadeBy
from kdx.report.selection.joined import names as names_of
from kdx.report.tables import Table
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.sanitize import sanitize_lines
from kdx.store.reading import grids
from kdx.store.sqlite.file import is_database_file

_MOST_NAMED = 4
"""The most files, tables or sweeps that a line names; of more, it gives the number."""


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

    Each table is made again by the command in the comment before it (JSON: `made_by`), or is found by its label
    (tab:NAME) or title (**NAME**), and compared number by number, with caption and notes. LaTeX files are read with the
    files that they include. A number in prose is compared if a comment with its kdx trace command follows it. Exit code
    5 if a number differs or could not be compared.

    Example: kdx check paper.tex

    Example: kdx check README.md docs/*.md

    Example: kdx check paper.tex quickstart
    """
    paths = [name for name in names if Path(name).suffix.lower() in FORMATS]
    sweeps = [name for name in names if name not in paths]
    for name in sweeps:
        names_sweep = paths and (is_grid_file(name) or is_database_file(Path(name)))
        if Path(name).is_file() and not names_sweep:
            raise KdxError("kdx check does not read this kind of file", place=name, allowed=[*FORMATS])
    if not paths:
        raise KdxError(
            "there is no file to check",
            place=names[0],
            allowed="FILE.json of kdx report --json, or FILE.md or FILE.tex with tables of kdx report --format",
        )
    read = {path: documents(Path(path)) for path in paths}
    # What a paper inputs may be named too.
    files = [*{document.path.resolve(): document for each in read.values() for document in each}.values()]
    file = _few(paths, "file")
    with context.read() as database:
        known = table_names(grids(database))
        titles = [name for of_sweep in known.values() for name in of_sweep] + ([table] if table else [])
        in_file = find_tables(files, titles)
        quoted, unreadable = find_quoted(files)
        elsewhere, absent = unread(files)
        left_out = absent + [what for _, what in unreadable]
        parts: list[FoundTable | Quoted] = [*in_file, *quoted]
        with_comments = [*(part.document for part in parts), *(document for document, _ in unreadable)]
        known_files = {document.path.resolve() for document in with_comments}
        without = [path for path, each in read.items() if known_files.isdisjoint(part.path.resolve() for part in each)]
        if len(without) == len(read) and not left_out:
            what = "this file" if len(paths) == 1 else "these files"
            hint = "kdx report --format latex, markdown or --json writes one"
            raise KdxError(f"there is no number of kdx in {what}", place=file, hint=hint)
        of_others = not_of_kdx(files, [*titles, *(each.name for each in in_file)])
        nothing = [f"there is no number of kdx in {_few(without, 'file')}"] if 0 < len(without) < len(read) else []
        if table is not None and table not in (there := [each.name for each in parts]):
            raise KdxError(f"there is no table `{table}`", place=file, allowed=list(dict.fromkeys(there)))
        reports: dict[MadeBy, LoadedReport] = {}
        to_compare: list[tuple[FoundTable | Quoted, MadeBy, LoadedReport]] = []
        for each in parts:
            if table not in (None, each.name):
                continue
            try:
                made_by = _made_by(each, sweeps, known)
                shared = _report_of(made_by)
                reports[shared] = reports.get(shared) or LoadedReport(database, shared, context)
                to_compare.append((each, made_by, reports[shared]))
            except KdxError as fault:
                if sweeps or fault.exit_code != KdxError.exit_code:
                    raise
                left_out.append(f"{each.place}: {in_a_line(fault)}")

    for note in (*elsewhere, *of_others, *nothing):
        say(f"note: {note}")
    compared: list[tuple[FoundTable | Quoted, MadeBy, Comparison]] = []
    for each, made_by, report in to_compare:
        try:
            compared.append((each, report.made_by, _compared(each, report.table(each.name), made_by)))
        except KdxError as fault:
            left_out.append(f"{each.place}: {in_a_line(fault)}")
    changes = [change for *_, result in compared for change in result.changes]
    left_out += [f"{each.place}: {part}" for each, _, result in compared for part in result.left_out]
    own = [part for *_, result in compared for part in result.own]
    of_sweeps = list(dict.fromkeys(name for report in reports.values() for name in names_of(report.record)))
    of_tables = list(dict.fromkeys(each.name for each, *_ in compared))
    numbers = sum(result.numbers for *_, result in compared)
    record = {
        "files": paths,
        "sweep": ", ".join(of_sweeps),
        "tables": of_tables,
        "numbers": numbers,
        "differences": changes,
        "own": own,
        "not_compared": left_out,
    }
    context.answer(record, lambda: _lines(changes, left_out))
    values = f"{file}: {count_of(numbers, 'number')} of {_few(of_tables, 'table')}"
    also = f"; captions and notes that the author rewrote: {len(own)}" if own else ""
    if not changes and not left_out:
        few = len(of_sweeps) <= _MOST_NAMED
        kind = "sweeps " if len(of_sweeps) > 1 else "sweep "
        say(f"{values} match{'es' * (numbers == 1)} {kind * few}{_few(of_sweeps, 'sweep')}{also}")
        return
    results = [f"{values} compared" if numbers else f"{file}: no number was compared"]
    results += [f"{len(changes)} differ{'s' * (len(changes) == 1)}"] if changes else ["none differs"] if numbers else []
    results += [f"{count_of(len(left_out), 'part')} could not be compared"] if left_out else []
    outdated = dict.fromkeys(shared for _, shared, result in compared if result.changes)
    again = " && ".join(f"{made_by}{context.options}" for made_by in outdated)
    say(f"{', '.join(results)}{also}{f'; as they are now: {again}' if again else ''}")
    raise typer.Exit(FOUND)


def _few(names: Sequence[str], what: str) -> str:
    """Return these names; of many, how many there are."""
    return ", ".join(names) if len(names) <= _MOST_NAMED else count_of(len(names), what)


def _lines(changes: Sequence[Change], left_out: Sequence[str]) -> Iterator[str]:
    for change in changes:
        what = change.key or ("" if change.kind is Kind.ROWS else change.kind)
        about = ": ".join(filter(None, (change.table, change.place, what)))
        yield sanitize_lines(f"{change.path}:{change.line}:{change.column}: {about}: was {change.was}, is {change.now}")
    yield from (sanitize_lines(f"not compared: {part}") for part in left_out)


def _made_by(part: FoundTable | Quoted, sweeps: Sequence[str], known: Mapping[str, Sequence[str]]) -> MadeBy:
    """Return how a table is made again: as the file says, of the sweeps that the command names.

    Raises:
        KdxError: neither says of which sweeps it is, and several have such a table.
    """
    made_by = part.made_by or MadeBy((), part.name, statistics=True)
    if sweeps:
        return replace(made_by, sweeps=tuple(sweeps))
    if made_by.sweeps:
        return made_by
    having = [name for name, titles in known.items() if part.name in titles]
    if len(having) > 1:
        hint = "add --sweep SWEEP to its comment" if isinstance(part, Quoted) else "say which: kdx check FILE SWEEP"
        raise KdxError(f"several sweeps have a table `{part.name}`: {', '.join(having)}", hint=hint)
    return replace(made_by, sweeps=tuple(having))


def _report_of(made_by: MadeBy) -> MadeBy:
    """Return what a table shares with others that are built in one go."""
    return replace(made_by, table=None, statistics=False, notes="short")


def _compared(part: FoundTable | Quoted, now: Table, made_by: MadeBy) -> Comparison:
    """Return the comparison with what the table is now; without a comment, with the notes that fit better."""
    if isinstance(part, Quoted):
        return compare_quoted(part, now.layout)
    if part.document.format == "json":
        return compare(part, as_json(to_json(now)), now.layout)
    write = to_latex if part.document.format == "latex" else to_markdown
    notes = [made_by.notes] if part.made_by else ["short", "full"]
    texts = [write(now, statistics=made_by.statistics, notes=each) for each in notes]
    return min((compare(part, text, now.layout) for text in texts), key=lambda comparison: len(comparison.changes))
