"""`kdx trace`: shows the runs, settings, data and code behind a number of a table."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, say
from kdx.cli.context import Answering
from kdx.cli.loaded_report import load_together, table_names
from kdx.cli.options import OfSweeps, Tables
from kdx.cli.shown import ATTEMPT, attempt_row, table_lines
from kdx.cli.wording import numbers_of
from kdx.errors import KdxError, did_you_mean
from kdx.grid.plan import Shown
from kdx.report.selection.joined import names
from kdx.report.sheets.scores import words
from kdx.report.table.tables_file import with_tables_of
from kdx.report.tables import tables as tables_of
from kdx.report.trace import Trace, TracedRun, find, to_json
from kdx.report.trace import trace as trace_place
from kdx.report.wording import rounded
from kdx.report.writers.settings import as_yaml
from kdx.sanitize import sanitize_lines
from kdx.shell import kdx_command, shell_word
from kdx.store.reading import attempts_of, grids

AGAIN = "again"
"""Name of the grid and the database in which a number is computed again."""


def trace(
    table: Annotated[str, typer.Argument(autocompletion=completion.tables, help="Name of a table, as printed.")],
    row: Annotated[str, typer.Argument(help="Header of its row, or words of it that no other row has.")],
    context: Answering,
    column: Annotated[
        str | None, typer.Argument(help="Header of its column, likewise; default: the only column.")
    ] = None,
    sweep: OfSweeps = None,
    tables: Tables = None,
    grid: Annotated[bool, typer.Option("--grid", help="Print a grid of this cell, to compute it again.")] = False,
) -> None:
    """Trace a number of a table to its runs, data and code.

    It lists seeds, settings, machines and every attempt. Names of a nested header are joined by " / ".

    Example: kdx trace positions "No position / rbf" translation
    """
    with context.read() as database:
        record = load_together(database, sweep or (), context, join=tables is not None)
        record = with_tables_of(tables, record) if tables else record
        shown = {each.layout.name: each.layout for each in tables_of(record, context.db)}
        if table not in shown:
            raise _no_table(table, record.name, list(shown), {} if tables else grids(database))
        at = find(shown[table], row, column)
        run_ids = [seed.run_id for seed in shown[table].places[at].seeds]
        traced = trace_place(record, shown[table], at, attempts_of(database, run_ids))
    if grid:
        out(traced.grid)
        say(f"a grid of one cell; run it with: kdx sweep FILE --db {AGAIN}.db")
        return
    context.answer(to_json(traced), lambda: _lines(traced, context.db))
    options = "".join(f" --sweep {shell_word(name)}" for name in names(record))
    options += f" --tables {shell_word(str(tables))}" if tables else ""
    again = kdx_command("trace", table, traced.row, traced.column, options=f"{options}{context.options} --grid")
    say(f"compute this cell again with: {again} > {AGAIN}.yaml && kdx sweep {AGAIN}.yaml --db {AGAIN}.db")


def _no_table(table: str, sweep: str, known: list[str], grids: Mapping[str, Mapping[str, Any]]) -> KdxError:
    """The error for a missing table, which names a sweep that has it."""
    others = [name for name, tables in table_names(grids).items() if table in tables]
    hint = f"sweep `{others[0]}` has it: --sweep {shell_word(others[0])}" if others else did_you_mean(table, known)
    return KdxError(f"sweep `{sweep}` has no table `{table}`", allowed=known, hint=hint)


def _lines(trace: Trace, db: str) -> Iterator[str]:
    cell = trace.cell
    yield sanitize_lines(f"{trace.table}: {trace.row}, {trace.column}")
    yield f"  {_number(trace)}"
    yield ""
    for name, command in trace.planned.items():
        yield f"sweep     {sanitize_lines(name)}, in {sanitize_lines(db)}"
        yield f"planned   {f'by: {sanitize_lines(command)}' if command else 'by a command that was not recorded'}"
    yield f"cell      {trace.record.id}"
    if trace.evaluation is not None:
        settings = ", ".join(f"{name} {word}" for name, word in trace.evaluation.words.items())
        yield f"evaluation  {sanitize_lines(trace.evaluation.asked.name)}: {sanitize_lines(settings)}"
    yield ""
    yield from (f"  {sanitize_lines(line)}" for line in as_yaml(trace.spec).splitlines())
    yield ""
    head = ("", "run", "seed", "state", cell.selected_by.name, "at step", trace.scored, "seconds")
    yield from table_lines(head, map(_run, trace.runs))
    for run in (each.record for each in trace.runs):
        if run.error:
            yield f"  run {run.id}: {sanitize_lines(run.error)}"
        if run.invalidated:
            yield f"  run {run.id} is excluded from reports: {sanitize_lines(run.invalidated)}"
    yield ""
    attempts = [(run.record.id, *attempt_row(attempt)) for run in trace.runs for attempt in run.attempts]
    yield from table_lines(("run", *ATTEMPT), attempts)
    for origin, runs in trace.origins:
        yield ""
        yield numbers_of("run", runs)
        yield f"  data         {sanitize_lines(origin.data or 'not recorded')}"
        yield f"  code         {sanitize_lines(origin.code or 'not recorded')}"
        environment = ", ".join(f"{name} {value}" for name, value in (origin.environment or {}).items())
        yield f"  environment  {sanitize_lines(environment)}"
        for name, fact in (origin.facts or {}).items():
            yield f"  {sanitize_lines(name):11}  {sanitize_lines(str(fact))}"
        for name, definition in (origin.definitions or {}).items():
            if name in (cell.selected_by.name, trace.scored):
                yield f"  {name:11}  {sanitize_lines(definition)}"


def _number(trace: Trace) -> str:
    cell = trace.cell
    if cell.value is None:
        text = words(cell, show_n=False)
        return "  ".join(filter(None, (text.score, text.note)))
    number = f"{rounded(cell.value, cell.metric.name)} = {cell.value!r}: {sanitize_lines(trace.scored)}"
    if cell.shown is Shown.MEAN:
        return f"{number}, mean over {len(cell.scores)} seeds"
    seed = "" if cell.seed is None else str(cell.seed)
    return f"{number} of run {cell.run_id}, seed {seed}: the best {cell.selected_by.name} of {cell.planned} seeds"


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


def _value(value: float | None) -> str:
    return "–" if value is None else repr(value)
