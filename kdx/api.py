"""The Python interface; `import kdx` has the same names.

    import kdx

    plan = kdx.load_grid("quickstart")
    for decision in kdx.plan("quickstart", "runs.db"):
        print(decision.action, decision.run.cell.labels, decision.run.seed, decision.reason)
    best = [run for run in kdx.runs("quickstart") if run.selected]
    frame = kdx.curves("quickstart", ["valid/loss"]).to_pandas()
    print(kdx.table("quickstart").text())
    model = kdx.load_run(best[0].id)

What is asked for comes first, `database=` last: a path or an address; the default is KDX_DB, or else `runs.db` in the
current folder, as in every command. No function writes to a database, and only `load_run` imports torch. Every function
raises the error that the command of its name reports: a `kdx.errors.KdxError`, such as `DatabaseError`, with place,
problem, allowed values and a hint.

Results show themselves in a notebook, and are frames: `.to_pandas()`, and whatever reads Arrow, such as
`polars.DataFrame(kdx.runs())`. Columns have the types of the fields, whatever is recorded.
"""

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints, overload

from rich.console import Console

from kdx.errors import KdxError, did_you_mean, packages_named, shortened
from kdx.grid import load
from kdx.grid.evaluations import EvaluationSettings
from kdx.grid.plan import Plan
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.report.made_by import MadeBy
from kdx.report.selection.best_seed import by_cell, selected_runs, standing_runs
from kdx.report.selection.evaluated import evaluated_cells
from kdx.report.selection.joined import joined, names
from kdx.report.sheet import Sheet, listing
from kdx.report.sheets.scores import scores
from kdx.report.tables import Table, with_tables_of
from kdx.report.tables import tables as tables_of
from kdx.report.wording import factor_column
from kdx.report.writers.latex import PREAMBLE, to_latex
from kdx.report.writers.markdown import to_markdown
from kdx.report.writers.text import text_table
from kdx.store import reading
from kdx.store.database import database_at, open_database
from kdx.store.reading import load_sweep
from kdx.sweep.decide import Decision, decisions_in

if TYPE_CHECKING:
    from pandas import DataFrame

    from kdx.run_files.load_run import LoadedRun

__all__ = [
    "Curve",
    "Records",
    "Run",
    "RunEvaluation",
    "Sweep",
    "TableView",
    "curves",
    "evaluations",
    "load_grid",
    "load_run",
    "plan",
    "runs",
    "sweeps",
    "table",
]

USUAL_CURVES = ("train/loss", "valid/loss")
MOST_SHOWN = 50
"""The most rows of records that a notebook shows."""
T = TypeVar("T", bound="_Record")


@dataclass(frozen=True)
class _Record:
    """A record, one of `Records`."""

    def _repr_html_(self) -> str:
        return _html_of(type(self).__name__, [{"field": name, "value": value} for name, value in self.shown().items()])

    columns: ClassVar[Mapping[str, str | None]] = {}
    """Field → its column in a data frame, if the name differs; None if it has no column."""

    @classmethod
    def types(cls, records: "Iterable[_Record]") -> dict[str, Any]:
        """Return column of a data frame → type, as `kdx.report.writers.arrow.stream` takes it.

        Args:
            records: their mappings have a column for each key.
        """
        types: dict[str, Any] = {}
        hints = get_type_hints(cls)
        for each in fields(cls):
            hint, column = hints[each.name], cls.columns.get(each.name, each.name)
            if get_origin(hint) is Mapping:
                keys = (key for record in records for key in getattr(record, each.name))
                types |= dict.fromkeys((cls._column(each.name, key) for key in keys), get_args(hint)[1] | None)
            elif column is not None:
                types[column] = hint
        return types

    def rows(self) -> Iterable[dict[str, Any]]:
        """Return the rows of the record in a data frame."""
        yield self.row()

    def shown(self) -> dict[str, Any]:
        """Return what a notebook shows of it."""
        return self.row()

    def row(self) -> dict[str, Any]:
        """Return column → value, with a column for each field, and for each key of a mapping."""
        row: dict[str, Any] = {}
        for each in fields(self):
            value, column = getattr(self, each.name), self.columns.get(each.name, each.name)
            if isinstance(value, Mapping):
                row |= {self._column(each.name, key): inner for key, inner in value.items()}
            elif column is not None:
                row[column] = value
        return row

    @classmethod
    def _column(cls, field_name: str, key: str) -> str:
        """The column of a key of a mapping."""
        return factor_column(key, cls._own_columns())

    @classmethod
    @cache
    def _own_columns(cls) -> frozenset[str]:
        """The columns of its fields, without those of the keys of mappings."""
        hints = get_type_hints(cls)
        plain = (each.name for each in fields(cls) if get_origin(hints[each.name]) is not Mapping)
        own = (cls.columns.get(name, name) for name in plain)
        return frozenset(filter(None, own))


_PANDAS: dict[Any, str] = {bool: "bool", int: "int64", int | None: "Int64", float: "float64", float | None: "float64"}


class _Frame:
    """What can be laid out in rows, and read by libraries of data frames."""

    def _rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _types(self) -> dict[str, Any]:
        """Return column → type, see `_Record.types`."""
        raise NotImplementedError

    def to_pandas(self) -> "DataFrame":
        """Return a data frame.

        Raises:
            KdxError: pandas, which is optional, is not installed.
        """
        with packages_named():
            from pandas import DataFrame, Series  # late: it is optional
        text = Series([""]).dtype  # of pandas 2 and of 3 it is not the same
        known: dict[Any, Any] = {**_PANDAS, str: text, str | None: text}
        types = self._types()
        frame = DataFrame(self._rows(), columns=list(types))
        return frame.astype({name: known[kind] for name, kind in types.items() if kind in known})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow's C interface, which polars, duckdb, pyarrow and others read."""
        from kdx.report.writers.arrow import stream  # late: few ask for it

        return stream(self._rows(), self._types()).__arrow_c_stream__(requested_schema)

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be read by what knows no Arrow, for it would make columns of the fields, or of nothing.

        Raises:
            KdxError: always.
        """
        raise KdxError("pandas.DataFrame(…) and numpy cannot read this", hint=".to_pandas() returns the data frame")


@dataclass(frozen=True, repr=False)
class Records(_Frame, Generic[T]):
    """Frozen records, in order.

    They are no `Sequence` by type, for polars would read a sequence by itself and not by Arrow.
    """

    _kind: type[T]
    _records: tuple[T, ...]

    def __iter__(self) -> Iterator[T]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> "Records[T]": ...

    def __getitem__(self, at: int | slice) -> "T | Records[T]":
        return Records(self._kind, self._records[at]) if isinstance(at, slice) else self._records[at]

    def _rows(self) -> list[dict[str, Any]]:
        return [row for record in self for row in record.rows()]

    def _types(self) -> dict[str, Any]:
        return self._kind.types(self)

    def __repr__(self) -> str:
        return f"<{len(self)} × {self._kind.__name__}>"

    def _repr_html_(self) -> str:
        # A metric of a part of the text, such as `test/bleu/source-words=5-8`, is for frames.
        rows = [record.shown() for record in self[:MOST_SHOWN]]
        shown = [{name: value for name, value in row.items() if "=" not in name} for row in rows]
        more = f"{len(self) - MOST_SHOWN} more are not shown" if len(self) > MOST_SHOWN else ""
        return _html_of(repr(self)[1:-1], shown, more)


@dataclass(frozen=True)
class Sweep(_Record):
    """A named plan in a database."""

    columns: ClassVar[Mapping[str, str | None]] = {"id": None, "name": "sweep"}
    id: int
    name: str
    created: float
    """Seconds since 1970."""
    updated: float
    """When it was last planned, in seconds since 1970."""
    counts: Mapping[str, int]
    """State → number of planned runs in it."""

    def shown(self) -> dict[str, Any]:
        return {**self.row(), "created": _date(self.created), "updated": _date(self.updated)}


@dataclass(frozen=True)
class Run(_Record):
    """One run of a sweep: a cell with a seed, in its newest final generation that tables show, or else its newest."""

    columns: ClassVar[Mapping[str, str | None]] = {"id": "run", "spec": None, "metric": None}
    id: int
    cell: str
    """Id of its cell, 32 hexadecimal digits."""
    labels: Mapping[str, str]
    """Axis → the cell's choice, as in the grid."""
    spec: ResolvedSpec = field(repr=False)
    """Every field of the cell, as plain values."""
    seed: int
    state: str
    """pending, running, interrupted, failed, cancelled, completed, diverged or pruned."""
    step: int
    """Number of recorded optimiser steps."""
    metric: str
    """The metric by which weights and seeds are selected, such as `valid/bleu`."""
    valid_score: float | None
    """Best value of the metric."""
    test_score: float | None
    """The same metric on the test split, with the weights of the best value."""
    metrics: Mapping[str, float] = field(repr=False)
    """Every metric of the test, such as `test/bleu`, and `model/parameters`."""
    selected: bool
    """Whether it has the best validation score of its cell's seeds; tables show this run."""
    seconds: float | None
    """Wall time of its ended attempts."""
    error: str | None
    """Why it failed or diverged, in one line."""
    invalidated: str | None = None
    """Why it is excluded from reports, in one line; None if it is not."""


@dataclass(frozen=True)
class Curve(_Record):
    """One metric of a run over its training."""

    columns: ClassVar[Mapping[str, str | None]] = {"steps": None, "values": None}
    run: int
    """Id of the run."""
    labels: Mapping[str, str]
    """Axis → the choice of its cell, as the grid words it."""
    seed: int
    metric: str
    """Name of the metric, such as `valid/loss`."""
    steps: Sequence[int] = field(repr=False)
    """Optimiser steps, ascending."""
    values: Sequence[float] = field(repr=False)
    """The number at each step, bit for bit as it was recorded."""

    @classmethod
    def types(cls, records: Iterable[_Record]) -> dict[str, Any]:
        return {**super().types(records), "step": int, "value": float}

    @classmethod
    @cache
    def _own_columns(cls) -> frozenset[str]:
        return super()._own_columns() | {"step", "value"}

    def shown(self) -> dict[str, Any]:
        first = {"first step": self.steps[0], "first value": self.values[0]}
        last = {"last step": self.steps[-1], "last value": self.values[-1]}
        return {**self.row(), "points": len(self.steps), **first, **last}

    def rows(self) -> Iterable[dict[str, Any]]:
        row = self.row()
        for step, value in zip(self.steps, self.values, strict=True):
            yield {**row, "step": step, "value": value}


@dataclass(frozen=True)
class RunEvaluation(_Record):
    """One evaluation of a run, made from its kept weights."""

    columns: ClassVar[Mapping[str, str | None]] = {"name": "evaluation"}
    run: int
    """Id of the run."""
    labels: Mapping[str, str]
    """Axis → the choice of its cell, as the grid words it."""
    seed: int
    name: str | None
    """Name in the grid; None if the sweep's newest plan lacks it."""
    settings: Mapping[str, Any]
    """Every setting, such as `length`, `corpus` and `split`."""
    metrics: Mapping[str, float]
    """Metric, without a split → value; empty if the evaluation failed."""
    longest_context: int | None
    """The largest number of tokens that a token was predicted from; None if no stream was read."""
    error: str | None
    """Why it failed, in one line."""

    @classmethod
    def _column(cls, field_name: str, key: str) -> str:
        # An axis may be called as a setting is, such as `length`.
        of_settings = EvaluationSettings.model_fields if field_name == "labels" else ()
        return factor_column(key, {*cls._own_columns(), *of_settings})


@dataclass(frozen=True, repr=False)
class TableView(_Frame):
    """A table of a sweep, in any of its forms."""

    table: Table
    """The cell in each place, with comparisons, audit and notes."""
    made_by: MadeBy
    """The command that makes the table."""

    def text(self, width: int = 100) -> str:
        """Return the table as `kdx report` shows it on a terminal of `width` columns."""
        console = Console(file=StringIO(), width=width, color_system=None)
        with console.capture() as captured:
            console.print(text_table(self.table))
        return captured.get()

    def markdown(self) -> str:
        """Return the table as `kdx report --format markdown` writes it."""
        return to_markdown(self.table, made_by=str(self.made_by))

    def latex(self) -> str:
        """Return the table as `kdx report --format latex` writes it, after the comment for the preamble."""
        return PREAMBLE + to_latex(self.table, made_by=str(self.made_by))

    def __str__(self) -> str:
        return self.text()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows())

    def __repr__(self) -> str:
        return f"<table {self.table.layout.name} of {len(self.table.layout.places)} cells>"

    def _repr_html_(self) -> str:
        return _fragment(scores(self.table))

    def _rows(self) -> list[dict[str, Any]]:
        """A row for each cell in the table: its factors, `n`, `score` as shown, `mean` and `sd` over seeds."""
        return [
            {
                **{factor_column(name, _SCORES): word for name, word in self.table.layout.header(at).items()},
                "metric": cell.metric.recorded,
                "n": len(cell.scores),
                "score": cell.value,
                "mean": cell.summary and cell.summary.mean,
                "sd": cell.summary and cell.summary.sd,
            }
            for at, cell in self.table.layout.places.items()
        ]

    def _types(self) -> dict[str, Any]:
        layout = self.table.layout
        factors = (factor_column(name, _SCORES) for name in (*layout.row_factors, *layout.column_factors))
        return {**dict.fromkeys(factors, str), **_SCORES}


_SCORES = {"metric": str, "n": int, "score": float | None, "mean": float | None, "sd": float | None}


def _html_of(title: str, rows: Sequence[Mapping[str, Any]], note: str = "") -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = [(name, [_text(row.get(name)) for row in rows]) for name in columns]
    return _fragment(listing(title, (), texts[:1] or [("", [])], texts[1:], [note] if note else []))


def _fragment(sheet: Sheet) -> str:
    from kdx.report.writers.html.page import fragment  # late: only notebooks need it

    return fragment(sheet)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else shortened(value)


def _place(database: str | Path | None) -> str | Path:
    return database or os.environ.get("KDX_DB") or "runs.db"


def _name(sweep: "str | Sweep | None") -> str | None:
    """Return the name of a sweep, which may be given by its record."""
    name = sweep.name if isinstance(sweep, Sweep) else sweep
    if name is None or isinstance(name, str):
        return name
    raise KdxError(f"`{shortened(name)}` is no name of a sweep", hint="kdx.sweeps() has them")


def load_grid(grid: str | Path, *, given: Sequence[str] = ()) -> Plan:
    """Read a grid and expand it into its plan: cells × seeds, each cell with its resolved spec and its id.

    Args:
        grid: path of a YAML file, or the name of a shipped grid, such as `quickstart`.
        given: each `key=value` replaces a value of the grid, such as `seeds=5`.

    Raises:
        Faults: everything that is wrong with the grid, each with its place.
    """
    if not isinstance(grid, str | Path):
        hint = "name a YAML file or a shipped grid, such as load_grid('quickstart'); yaml.safe_dump writes a mapping"
        raise KdxError(f"`{shortened(grid)}` is no grid", hint=hint)
    return load.load_grid(grid, given=given)


def plan(grid: str | Path | Plan, database: str | Path | None = None) -> tuple[Decision, ...]:
    """Return what a sweep of this grid would do with each run, and why, given the database; nothing is started.

    Args:
        grid: as for `load_grid`, or a plan that it returned.
        database: path or address; it need not exist.

    Raises:
        Faults: see `load_grid`.
        DatabaseError: the database is not one of kdx, or cannot be read.
    """
    wanted = grid if isinstance(grid, Plan) else load_grid(grid)
    database = _place(database)
    if not database_at(database).exists():
        return decisions_in(None, wanted)
    with open_database(database, write=False) as opened:
        return decisions_in(opened, wanted)


def sweeps(database: str | Path | None = None) -> Records[Sweep]:
    """Return every sweep of a database, the most recent first.

    Raises:
        DatabaseError: the database does not exist, is not one of kdx, or cannot be read.
    """
    with open_database(_place(database), write=False) as opened:
        return Records(
            Sweep,
            tuple(
                Sweep(
                    sweep.id,
                    sweep.name,
                    sweep.created,
                    sweep.updated,
                    {state.value: n for state, n in sweep.counts.items()},
                )
                for sweep in reading.sweeps(opened)
            ),
        )


def runs(sweep: str | Sweep | None = None, database: str | Path | None = None) -> Records[Run]:
    """Return every run of a sweep, cell by cell in the order of the plan.

    Args:
        sweep: its name; default: the most recent.

    Raises:
        KdxError: there is no such sweep.
        DatabaseError: see `sweeps`.
    """
    with open_database(_place(database), write=False) as opened:
        record = load_sweep(opened, _name(sweep))
    best = {run.id for run in selected_runs(record).values()}
    of_cells = by_cell(record.runs)
    return Records(
        Run,
        tuple(
            Run(
                id=run.id,
                cell=cell.id,
                labels=cell.labels,
                spec=cell.spec,
                seed=run.seed,
                state=run.state.value,
                step=run.progress_step,
                metric=cell.spec.selection_metric,
                valid_score=run.valid_score,
                test_score=run.test_score,
                metrics=record.metrics.get(run.id, {}),
                selected=run.id in best,
                seconds=run.seconds,
                error=run.error,
                invalidated=run.invalidated,
            )
            for cell in record.distinct_cells.values()
            for run in standing_runs(of_cells.get(cell.id, ()))
        ),
    )


def evaluations(sweep: str | Sweep | None = None, database: str | Path | None = None) -> Records[RunEvaluation]:
    """Return every evaluation of the runs of a sweep, from any grid.

    Args:
        sweep: its name; default: the most recent.

    Raises:
        KdxError: there is no such sweep.
        DatabaseError: see `sweeps`.
    """
    with open_database(_place(database), write=False) as opened:
        record = load_sweep(opened, _name(sweep))
    cells = record.distinct_cells
    names = {(cell.cell_id, cell.evaluation.id): cell.evaluation.request.name for cell in evaluated_cells(record)}
    return Records(
        RunEvaluation,
        tuple(
            RunEvaluation(
                run.id,
                cells[run.cell_id].labels,
                run.seed,
                names.get((run.cell_id, evaluation.settings_id)),
                evaluation.settings,
                evaluation.metrics,
                evaluation.longest_context,
                evaluation.error,
            )
            for run in record.runs
            for evaluation in record.evaluations.get(run.id, {}).values()
        ),
    )


def curves(
    sweep: str | Sweep | None = None, metrics: str | Iterable[str] = USUAL_CURVES, database: str | Path | None = None
) -> Records[Curve]:
    """Return metrics of every run of a sweep, over its training.

    Args:
        sweep: its name; default: the most recent.
        metrics: one metric or several, with their split, such as `valid/bleu`; a run need not have all.

    Raises:
        KdxError: there is no such sweep, or none of its runs has recorded a metric.
        DatabaseError: see `sweeps`.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    with open_database(_place(database), write=False) as opened, opened.read():
        record = load_sweep(opened, _name(sweep))
        runs_by_id = {run.id: run for run in record.runs}
        known = reading.metric_names(opened, runs_by_id)
        for name in names:
            # A run that has just started lacks the usual ones.
            if known and name not in (*known, *USUAL_CURVES):
                raise KdxError(f"no run has recorded `{name}`", allowed=known, hint=did_you_mean(name, known))
        curves_by_run = reading.curves_of(opened, runs_by_id, names)
    cells = record.distinct_cells
    return Records(
        Curve,
        tuple(
            Curve(run.id, cells[run.cell_id].labels, run.seed, name, curve.steps, curve.values)
            for run in record.runs
            for name, curve in curves_by_run.get(run.id, {}).items()
        ),
    )


def table(
    sweep: str | Sweep | Iterable[str | Sweep] | None = None,
    name: str | None = None,
    database: str | Path | None = None,
    *,
    tables: str | Path | None = None,
) -> TableView:
    """Return a table of a sweep: for each cell, the test score of the seed with the best validation score, compared.

    Args:
        sweep: its name, default: the most recent; given several, the table has the cells of all and the factor `sweep`.
        name: name of the table; default: the first of the grid.
        tables: a YAML file with `tables:`, which replace those of the grid.

    Raises:
        KdxError: there is no such sweep or table.
        Faults: `tables` cannot be read, or its tables do not fit the cells.
        DatabaseError: see `sweeps`.
    """
    wanted = sweep if isinstance(sweep, Iterable) and not isinstance(sweep, str) else [sweep]
    sweep_names = list(dict.fromkeys(map(_name, wanted)))
    if not sweep_names:
        raise KdxError("no sweep is named", hint="kdx.sweeps() has them")
    with open_database(_place(database), write=False) as opened, opened.read():
        records = [load_sweep(opened, sweep_name) for sweep_name in sweep_names]
    record = joined(records) if len(records) > 1 or tables is not None else records[0]
    record = record if tables is None else with_tables_of(Path(tables), record)
    table = tables_of(record, str(_place(database)), only=name)[0]
    return TableView(table, MadeBy(names(record), table.layout.name, None if tables is None else str(tables)))


def load_run(
    run: int | str | Run,
    database: str | Path | None = None,
    *,
    home: str | Path | None = None,
    components: str | Path | None = None,
) -> "LoadedRun":
    """Return the model of a finished run with the weights that were tested; it can `translate`, `classify`, give the
    `perplexity` of text and show `attention`, see `kdx.training.trained.Trained`.

    Args:
        run: its id, as in `runs` and `kdx trace`, or its record.
        home: folder of prepared corpora; default: the user's.
        components: folder with the files of the cell's custom components, whose code is run; default: the current one.

    Raises:
        KdxError: the run does not exist or has no weights, or its cell has names that this kdx does not know; or a
            custom component is not in `components`, or has another source than the one that was trained.
        DatabaseError: see `sweeps`; or the files next to it belong to another database.
        StorageError: the weights cannot be read or are damaged.
    """
    run = run.id if isinstance(run, Run) else run
    try:
        number = int(run) if isinstance(run, str) else operator.index(run)  # ids in a data frame are numpy numbers
    except (TypeError, ValueError):
        hint = "kdx.runs() has the ids, and the database comes last: load_run(5, 'runs.db')"
        raise KdxError(f"`{shortened(run)}` is no id of a run", hint=hint) from None
    with packages_named():
        from kdx.run_files import load_run as loading  # late: it imports torch, which no other function needs
    return loading.load_run(_place(database), number, home=home, components=components)
