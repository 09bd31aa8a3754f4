"""`kdx trace`: shows the runs, settings, data and code behind a number of a table."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Files, Json, OfSweeps, Tables, in_database
from kdx.cli.sweep_argument import load_together, plans_in_files, sweep_words, table_names
from kdx.errors import KdxError, did_you_mean
from kdx.grid.plan import Shown
from kdx.report.sheets.scores import words
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables as tables_of
from kdx.report.trace import Trace, TracedRun, find, to_json
from kdx.report.trace import trace as trace_place
from kdx.report.wording import rounded
from kdx.report.writers.rows import to_text
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import spelled_out
from kdx.shell import kdx_command, shell_word
from kdx.store.database import open_database
from kdx.store.reading import attempts_of, grids

AGAIN = "again"
"""Name of the grid and the database in which a number is computed again."""


def trace(
    table: Annotated[str, typer.Argument(autocompletion=completion.tables, help="Name of a table, as printed.")],
    row: Annotated[str, typer.Argument(help="Header of its row, or words of it that no other row has.")],
    column: Annotated[
        str | None, typer.Argument(help="Header of its column, likewise; not needed where there is one only.")
    ] = None,
    sweep: OfSweeps = None,
    tables: Tables = None,
    db: Db = DATABASE,
    files_in: Files = None,
    grid: Annotated[bool, typer.Option("--grid", help="Only a grid of this one cell, to compute it again.")] = False,
    json: Json = False,
) -> None:
    """Trace a number of a table to its runs, data and code.

    It lists seeds, settings, machines and every attempt. Names of a
    nested header are joined by " / ".

    Example: kdx trace positions "No position / rbf" translation
    """
    named = sweep or []
    plans = plans_in_files(named, "trace")
    with open_database(db, write=False) as database, database.read():
        record = load_together(database, named, plans, db, join=tables is not None)
        record = with_tables_of(tables, record) if tables else record
        shown = {each.layout.name: each.layout for each in tables_of(record, db)}
        if table not in shown:
            raise _no_table(table, record.name, list(shown), {} if tables else grids(database))
        at = find(shown[table], row, column)
        cell = shown[table].places[at]
        traced = trace_place(record, shown[table], at, attempts_of(database, [seed.run_id for seed in cell.seeds]))
    if grid:
        out(traced.grid)
        say(f"a grid of one cell; run it with: kdx sweep FILE --db {AGAIN}.db")
        return
    if json:
        out_json(to_json(traced))
    else:
        out("\n".join(map(spelled_out, _lines(traced, db))))
    words = (*sweep_words(record), *(("--tables", str(tables)) if tables else ()))
    options = "".join(f" {shell_word(word)}" for word in words) + f"{in_database(db)} --grid"
    again = kdx_command("trace", table, traced.row, traced.column, options=options)
    say(f"compute this cell again with: {again} > {AGAIN}.yaml && kdx sweep {AGAIN}.yaml --db {AGAIN}.db")


def _no_table(table: str, sweep: str, known: list[str], grids: Mapping[str, Mapping[str, Any]]) -> KdxError:
    """The error for a missing table, which names a sweep that has it."""
    others = [name for name, tables in table_names(grids).items() if table in tables]
    hint = f"sweep `{others[0]}` has it: --sweep {shell_word(others[0])}" if others else did_you_mean(table, known)
    return KdxError(f"sweep `{sweep}` has no table `{table}`", allowed=known, hint=hint)


def _lines(trace: Trace, db: str) -> Iterator[str]:
    cell = trace.cell
    yield f"{trace.table}: {trace.row}, {trace.column}"
    yield f"  {_number(trace)}"
    yield ""
    for name, command in trace.planned.items():
        yield f"sweep     {name}, in {db}"
        yield f"planned   {f'by: {command}' if command else 'by a command that was not recorded'}"
    yield f"cell      {trace.record.id}"
    if trace.evaluation is not None:
        settings = ", ".join(f"{name} {word}" for name, word in trace.evaluation.words.items())
        yield f"evaluation  {trace.evaluation.asked.name}: {settings}"
    yield ""
    yield from (f"  {line}" for line in as_yaml(trace.spec).splitlines())
    yield ""
    yield from _indented(
        ("", "run", "seed", "state", cell.selected_by.name, "at step", trace.scored, "seconds"),
        [_run(run) for run in trace.runs],
    )
    yield from (f"  run {run.record.id}: {run.record.error}" for run in trace.runs if run.record.error)
    for run in trace.runs:
        if run.record.invalidated:
            yield f"  run {run.record.id} is excluded from reports: {run.record.invalidated}"
    yield ""
    yield from _indented(
        ("run", "attempt", "started (UTC)", "steps", "outcome", "process", "changed"),
        [row for run in trace.runs for row in _attempts(run)],
    )
    for origin, runs in trace.origins:
        environment = ", ".join(f"{name} {value}" for name, value in (origin.environment or {}).items())
        definitions = {
            name: text
            for name, text in (origin.definitions or {}).items()
            if name in (cell.selected_by.name, trace.scored)
        }
        facts = {
            "data": origin.data or "not recorded",
            "code": origin.code or "not recorded",
            "environment": environment,
            **(origin.facts or {}),
            **definitions,
        }
        yield ""
        yield f"run{'' if len(runs) == 1 else 's'} {', '.join(map(str, runs))}"
        yield from (f"  {name:11}  {fact}" for name, fact in facts.items())


def _number(trace: Trace) -> str:
    cell = trace.cell
    if cell.value is None:
        text = words(cell, show_n=False)
        return "  ".join(filter(None, (text.score, text.note)))
    number = f"{rounded(cell.value, cell.metric.name)} = {cell.value!r}: {trace.scored}"
    if cell.shown is Shown.MEAN:
        return f"{number}, mean over {len(cell.scores)} seeds"
    return f"{number} of run {cell.run_id}, seed {cell.seed}: the best {cell.selected_by.name} of {cell.planned} seeds"


def _run(run: TracedRun) -> tuple[str, ...]:
    record = run.record
    return (
        "*" if run.selected else "",
        str(record.id),
        str(record.seed),
        record.state.value,
        _value(record.valid_score),
        _value(record.valid_step),
        _value(run.score),
        "–" if record.seconds is None else f"{record.seconds:.1f}",
    )


def _attempts(run: TracedRun) -> Iterator[tuple[str, ...]]:
    for attempt in run.attempts:
        started = datetime.fromtimestamp(attempt.started, UTC).strftime("%Y-%m-%d %H:%M:%S")
        # The step of the checkpoint is not known for an attempt that ended before it began.
        first = attempt.first_step if attempt.resumed_step is None else attempt.resumed_step
        steps = f"{first}–{_value(attempt.last_step)}"
        outcome, changed = attempt.outcome or "running", attempt.changes or "nothing"
        yield str(run.record.id), str(attempt.number), started, steps, outcome, attempt.owner, changed


def _value(value: float | None) -> str:
    return "–" if value is None else repr(value)


def _indented(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    return (f"  {line}" for line in to_text(header, rows))
