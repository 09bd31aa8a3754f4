"""`kdx report`: prints the tables of sweeps."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import load_named
from kdx.cli.options import OnlyTable, TableFormat, Tables
from kdx.cli.suggest import computing_options, evaluate, resume, retry
from kdx.cli.wording import choices_of, count_of
from kdx.errors import KdxError, did_you_mean, shortened
from kdx.report.figures.charts import AttentionMap
from kdx.report.made_by import MadeBy
from kdx.report.papers.paper_file import load_paper
from kdx.report.selection.best_seed import selected_runs
from kdx.report.selection.cells import Cell, State
from kdx.report.selection.joined import joined, names
from kdx.report.table.bleu_randomisation import randomise
from kdx.report.tables import Table, tables, with_tables_of
from kdx.report.writers import Format, writer
from kdx.report.writers.json import to_json
from kdx.store.database import Database
from kdx.store.reading import curves_of, outputs_of
from kdx.store.records import CurveRecord, RunState, SweepRecord
from kdx.vocabulary import Split

if TYPE_CHECKING:
    from kdx.grid.sections import Data


class Notes(StrEnum):
    """The length of the notes below a table."""

    NONE = "none"
    SHORT = "short"
    FULL = "full"


def report(
    context: Answering,
    format: TableFormat,
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SWEEP",
            autocompletion=completion.names,
            help="Sweeps, or their grid files; default: the most recent sweep. Tables of several have the cells of"
            " all, and `sweep` is a factor.",
        ),
    ] = None,
    table: OnlyTable = None,
    tables: Tables = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="PAPER", help="Compare with published values: a paper, such as tsai2019, or a file."
        ),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Add all statistics and differences; a page and CSV have them.")
    ] = False,
    paired_ar: Annotated[
        bool, typer.Option("--paired-ar", help="Compare BLEU by approximate randomisation, as sacrebleu's --paired-ar.")
    ] = False,
    notes: Annotated[Notes, typer.Option("--notes", help="The notes below a table; a page has all.")] = Notes.SHORT,
    attention: Annotated[
        list[str] | None,
        typer.Option("--attention", metavar="RUN:LINE", help="Draw a run's attention on the page, as it reads a line."),
    ] = None,
) -> None:
    """Print the tables of sweeps, as text, LaTeX and more.

    Each cell has the test score of its best-validation seed, and the spread over seeds.

    Example: kdx report quickstart --format latex > table.tex

    Example: kdx report --tables both.yaml monday tuesday

    Example: kdx report --format html --attention "7: ein mann schläft ." > page.html
    """
    if attention and (format is not Format.HTML or context.json):
        raise KdxError("--attention is drawn on a page", hint="add --format html")
    file = str(tables) if tables else None
    made_by = MadeBy(tuple(sweeps or ()), None, file, against, statistics, paired_ar, notes.value)
    as_page = format is Format.HTML and not context.json
    drawn: Mapping[int, Mapping[str, CurveRecord]] = {}
    # Everything is read from one state of the database.
    with context.read() as database:
        loaded = LoadedReport(database, made_by, context)
        record = loaded.record
        # A grid file has tables of its own.
        made_by = replace(made_by, sweeps=tuple(sweeps or names(record)))
        options = {name: computing_options(context, database, name) for name in names(record)}
        if as_page:
            # NumPy and Jinja2, which no other format needs.
            from kdx.report.writers.html import learning, page

            wanted = learning.curves_wanted(record)
            drawn = curves_of(database, [run.id for run in record.runs], wanted)
    shown = loaded.tables(table)
    if context.json:
        written = [to_json(each, made_by.command(each.layout.name)) for each in shown]
        out_json({"sweep": record.name, "sweeps": names(record), "tables": written})
    elif as_page:
        out(page.to_html(shown, record, drawn, maps=[*_maps(context, record, attention or ())]))
    else:
        for part in writer(format).write_tables(shown, made_by):
            out(part)
    say(_closing(record, shown, options))


def _maps(context: Context, record: SweepRecord, settings: Sequence[str]) -> Iterator[tuple[str, list[AttentionMap]]]:
    """Yield what each run of `RUN:LINE` reads, with its attention."""
    for each in settings:
        number, _, line = each.partition(":")
        run = int(number) if number.strip().isdecimal() else None
        hint = 'the number of a run and what it shall read, such as --attention "7: ein mann schläft ."'
        if run not in {known.id for known in record.runs}:
            raise KdxError(f"--attention {shortened(each)}: {record.name} has no such run", hint=hint)
        if not line.strip():
            raise KdxError(f"--attention {shortened(each)}: there is no line to read", hint=hint)
        # late: it imports torch, without which results are read
        from kdx.run_files.load_run import load_run

        loaded = load_run(context.db, run)
        labels = next(cell.labels for cell in record.cells if cell.id == loaded.record.cell_id)
        with warnings.catch_warnings(record=True) as unknown:
            warnings.simplefilter("always", UserWarning)
            read = [
                AttentionMap(name, queries, keys, weights.tolist())
                for name, queries, keys, weights in loaded.attention_maps(line.strip())
            ]
        for text in dict.fromkeys(str(warning.message) for warning in unknown):
            say(f"note: {text}")
        yield f"{choices_of(labels)}, run {run}: {line.strip()}", read


def _closing(sweep: SweepRecord, tables: Sequence[Table], options: Mapping[str, str]) -> str:
    """Return the last line: counts of cells, each counted once, and the next command."""
    cells = {cell.id: cell for table in tables for cell in table.layout.cells}.values()
    records = {key: record for table in tables for key, record in table.layout.records.items()}
    states = Counter(cell.state for cell in cells)
    counts = [f"{states[State.VALUE]} with a score"]
    others = (State.DIVERGED, State.OUT_OF_MEMORY, State.FAILED, State.INVALIDATED, State.MISSING)
    counts += [f"{states[state]} {state}" for state in others if states[state]]
    closing = f"{count_of(len(cells), 'cell')}: {', '.join(counts)}"
    evaluated = {key: cell for table in tables for key, cell in table.layout.evaluations.items()}
    broken = frozenset[int]().union(*(cell.failed for cell in evaluated.values()))

    def failed(cell: Cell) -> bool:
        return any(seed.outcome == RunState.FAILED and seed.run_id not in broken for seed in cell.seeds)

    def unmade(cell: Cell) -> bool:
        states = [seed.outcome for seed in cell.seeds if seed.score is None]
        return cell.id in evaluated and (RunState.COMPLETED in states or bool(evaluated[cell.id].failed))

    for command, left in (
        # What is left of a cell with failed runs may be paused.
        (resume, [cell for cell in cells if cell.unfinished > cell.cancelled and not cell.failed]),
        (partial(retry, RunState.FAILED), [cell for cell in cells if failed(cell)]),
        (partial(retry, RunState.CANCELLED), [cell for cell in cells if cell.cancelled]),
        (partial(evaluate, failed=bool(broken)), [cell for cell in cells if unmade(cell)]),
    ):
        if left:
            of_sweeps = {name for cell in left for name in records[cell.id].sweeps or names(sweep)}
            commands = [command(name, options[name]) for name in names(sweep) if name in of_sweeps]
            return f"{closing}; next: {' && '.join(commands)}"
    return closing


TEXTS = "test/translations"
"""The name of a run's output with its translations."""


def table_names(grids: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return sweep → the names of its tables.

    Args:
        grids: of `kdx.store.reading.grids`.
    """
    # If a grid asks for no table, its default table has the name of the sweep.
    return {
        name: [str(table["name"]) for table in grid.get("tables") or [{"name": name}]] for name, grid in grids.items()
    }


class LoadedReport:
    """The records of a report, read within one transaction; its tables are built after it.

    Several sweeps are joined; so is a single one with `--tables`, whose tables may select by `sweep`.
    """

    def __init__(self, database: Database, made_by: MadeBy, context: Context) -> None:
        """Read the records.

        Raises:
            KdxError: there is no such sweep, or one that cannot be joined.
        """
        self.made_by = made_by
        self._db = context.db
        records = [load_named(database, sweep, context) for sweep in made_by.sweeps or (None,)]
        several = made_by.tables is not None or len({record.id for record in records}) > 1
        record = joined(records) if several else records[0]
        self.record = with_tables_of(Path(made_by.tables), record) if made_by.tables else record
        runs = [run.id for run in selected_runs(self.record).values()] if made_by.paired_ar else []
        self._texts = outputs_of(database, runs, TEXTS) if runs else {}

    def tables(self, only: str | None = None) -> tuple[Table, ...]:
        """Return the tables; `only` the one of this name."""
        made_by, record = self.made_by, self.record
        paper = load_paper(made_by.against, [record]) if made_by.against else None
        over_sentences = partial(randomise, sweep=record, lines=self._texts, references=_references)
        with_sentences = over_sentences if made_by.paired_ar else None
        return tables(record, self._db, only=only, paper=paper, randomise=with_sentences)

    def table(self, name: str) -> Table:
        """Return one of the tables, all of which are built for the first.

        Raises:
            KdxError: there is none of this name.
        """
        if name not in self._by_name:
            problem = f"there is no table `{name}` in {', '.join(names(self.record))}"
            raise KdxError(problem, allowed=[*self._by_name], hint=did_you_mean(name, self._by_name))
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, Table]:
        return {each.layout.name: each for each in self.tables()}


@cache
def _references(data: "Data") -> Sequence[str]:
    """Return the references of a local corpus."""
    # late: it reads grids and corpora, which takes longer than all other imports, and only --paired-ar needs it
    from kdx.data.find_text import find_text

    text = find_text(data)
    return [" ".join(line.split()) for line in text.lines(Split.TEST, text.suffixes[-1])]
