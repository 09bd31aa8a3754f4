"""`kdx check`: compares the numbers in a file with the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.console import as_json, out, out_json, say
from kdx.cli.db import FOUND
from kdx.cli.options import DATABASE, Against, Db, Files, Json, OfSweeps, OnlyTable, PairedAr, Tables, in_database
from kdx.cli.sweep_argument import load_together, plans_in_files, table_names
from kdx.cli.translations import TEXTS, translations_of
from kdx.errors import KdxError
from kdx.report.check import Comparison, FoundTable, compare, documents, find_tables
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.selection.joined import names
from kdx.report.table.table import Table
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables as tables_of
from kdx.report.writers.json import to_json
from kdx.report.writers.latex import to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.sanitize import sanitize_lines
from kdx.shell import shell_word
from kdx.store.database import Database, open_database
from kdx.store.reading import grids, outputs_of
from kdx.store.records import SweepRecord


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

    Each table is made again as the comment before it says (in JSON, its
    key made_by), and compared number by number, captions and notes as
    well; without a comment, as its label (tab:NAME) or title (**NAME**)
    says. A paper in LaTeX is read with what it inputs from its folder.
    Exit code 5 if a number differs from the database, or was not
    compared.

    Example: kdx check paper.tex

    Example: kdx check paper.tex quickstart
    """
    named = (*(sweeps or ()), *(sweep or ()))
    plans_in_files(named, f"check {shell_word(str(file))}")
    files = documents(file)
    with open_database(db, write=False) as database, database.read():
        known = table_names(grids(database))
        titles = [name for of_sweep in known.values() for name in of_sweep] + ([table] if table else [])
        found = find_tables(files, titles)
        if table is not None and table not in (there := [item.name for item in found]):
            raise KdxError(f"there is no table `{table}`", place=str(file), allowed=list(dict.fromkeys(there)))
        found = [item for item in found if table in (None, item.name)]
        made = [_made_by(item, named, known, tables, against, paired_ar=paired_ar) for item in found]
        loaded = {item: _Loaded(database, item, db) for item in dict.fromkeys(map(_of_report, made))}
    shown = {item: {each.layout.name: each for each in report.tables(db)} for item, report in loaded.items()}
    results: list[tuple[FoundTable, Comparison]] = []
    left_out: list[str] = []
    for item, made_by in zip(found, made, strict=True):
        now = shown[_of_report(made_by)].get(item.name)
        if now is None:
            of = next((name for name, of_sweep in known.items() if item.name in of_sweep), "")
            left_out.append(f"{item.name} of sweep {of}" if of else item.name)
        else:
            results.append((item, _compared(item, now, made_by)))
    changes = [change for _, result in results for change in result.changes]
    left_out += [part for _, result in results for part in result.left_out]
    of_sweeps = list(dict.fromkeys(name for report in loaded.values() for name in names(report.record)))
    compared_tables = list(dict.fromkeys(item.name for item, _ in results))
    numbers = sum(result.numbers for _, result in results)
    compared_values = f"{file}: {numbers} numbers of {', '.join(compared_tables)}"
    own = [part for _, result in results for part in result.own]
    also = (
        f"; {len(own)} caption{'s' * (len(own) > 1)} or note{'s' * (len(own) > 1)} of the author's own" if own else ""
    )
    if json:
        compared = {"file": str(file), "sweep": ", ".join(of_sweeps), "tables": compared_tables, "numbers": numbers}
        differences = [asdict(change) for change in changes]
        out_json(compared | {"differences": differences, "own": own, "not_compared": left_out})
    else:
        for change in changes:
            what = change.key if change.key else "" if change.kind == "rows" else change.kind
            place = f"{change.path}:{change.line}:{change.column}: {change.table}"
            out(sanitize_lines(f"{place}: {f'{what} ' if what else ''}was {change.was}, is {change.now}"))
        for part in left_out:
            out(sanitize_lines(f"not compared: {part}"))
    if not changes and not left_out:
        say(f"{compared_values} match sweep {', '.join(of_sweeps)}{also}")
        return
    options = in_database(db)
    reports = " && ".join(f"{replace(item, statistics=False)}{options}" for item in loaded)
    differ = f"{len(changes)} differ{'s' * (len(changes) == 1)}" if changes else "they match"
    if left_out:
        differ += f", {len(left_out)} part{'' if len(left_out) == 1 else 's'} could not be compared"
    say(f"{compared_values} compared, {differ}{also}; as they are now: {reports}")
    raise typer.Exit(FOUND)


def _made_by(
    found: FoundTable,
    named: Sequence[str],
    known: Mapping[str, Sequence[str]],
    tables: Path | None,
    against: str | None,
    *,
    paired_ar: bool,
) -> MadeBy:
    """How a table of a file is made again: as its comment says, unless the command says otherwise."""
    of_name = tuple(name for name, titles in known.items() if found.name in titles)[:1]
    made_by = found.made_by or MadeBy(of_name, found.name, statistics=True)
    if not set(made_by.sweeps) <= known.keys():
        made_by = replace(made_by, sweeps=of_name or made_by.sweeps)
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


class _Loaded:
    """The records of a report, read within one transaction, of which its tables are built after it."""

    def __init__(self, database: Database, made_by: MadeBy, db: str) -> None:
        plans = plans_in_files(made_by.sweeps, "check")
        self.made_by = made_by
        self.record: SweepRecord = load_together(database, made_by.sweeps, plans, db, join=made_by.tables is not None)
        runs = [run.id for run in selected_runs(self.record).values()] if made_by.paired_ar else []
        self._texts = outputs_of(database, runs, TEXTS) if runs else {}

    def tables(self, db: str) -> tuple[Table, ...]:
        made_by, record = self.made_by, self.record
        return tables_of(
            with_tables_of(Path(made_by.tables), record) if made_by.tables else record,
            db,
            paper=load_paper(made_by.against, [record]) if made_by.against else None,
            randomise=translations_of(record, self._texts).randomise if made_by.paired_ar else None,
        )


def _compared(found: FoundTable, now: Table, made_by: MadeBy) -> Comparison:
    """The comparison with what the table is now; without a comment, with the length of notes that fits better."""
    suffix = found.document.path.suffix.lower()
    if suffix == ".json":
        return compare(found, as_json(to_json(now)))
    write = to_latex if suffix == ".tex" else to_markdown
    full = [made_by.notes == "full"] if found.made_by else [False, True]
    texts = [write(now, statistics=made_by.statistics, full=is_full) for is_full in full]
    return min((compare(found, text) for text in texts), key=lambda comparison: len(comparison.changes))
