"""`kdx trace`: shows the runs, settings, data and code behind a number of a table."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Annotated, Any

import typer

from kdx.cli import completion
from kdx.cli.console import out, say, table
from kdx.cli.context import Answering
from kdx.cli.options import Tables, sweep_option
from kdx.cli.report import LoadedReport, table_names
from kdx.cli.shown import ATTEMPT, attempt_row, fact_lines, yaml_lines
from kdx.cli.wording import count_of, numbers_of
from kdx.errors import KdxError, did_you_mean
from kdx.grid.plan import Shown
from kdx.metrics.decimals import rounded
from kdx.report.made_by import MadeBy
from kdx.report.selection.joined import names
from kdx.report.sheets.scores import words
from kdx.report.trace import Trace, TracedRun, find, to_json
from kdx.report.trace import trace as trace_place
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
    sweep: Annotated[
        list[str] | None,
        sweep_option(
            "A sweep, or its grid file; may be repeated. Default: the only one with this table, else the latest sweep."
        ),
    ] = None,
    tables: Tables = None,
    grid: Annotated[bool, typer.Option("--grid", help="Print a grid of this cell, to compute it again.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Show settings, seeds, data, code, machines and every attempt too.")
    ] = False,
) -> None:
    """Trace a number of a table to its runs, data and code.

    Names of a nested header are joined by " / ".

    Example: kdx trace positions "No position / rbf" translation
    """
    if grid and (full or context.json):
        hint = "--json has the grid too" if context.json else None
        raise KdxError("--grid excludes --full and --json", hint=hint)
    with context.read() as database:
        # Where only one sweep has such a table, it is meant, whatever was swept since.
        having = (
            [] if sweep or tables else [name for name, known in table_names(grids(database)).items() if table in known]
        )
        named = tuple(sweep or (having if len(having) == 1 else ()))
        loaded = LoadedReport(database, MadeBy(named, tables=str(tables) if tables else None), context)
        record, shown = loaded.record, {each.layout.name: each.layout for each in loaded.tables()}
        if table not in shown:
            raise _no_table(table, record.name, list(shown), {} if tables else grids(database))
        at = find(shown[table], row, column)
        run_ids = [seed.run_id for seed in shown[table].places[at].seeds]
        traced = trace_place(record, shown[table], at, attempts_of(database, run_ids))
    if grid:
        out(traced.grid)
        say(f"a grid of one cell; run it with: kdx sweep FILE --db {AGAIN}.db")
        return
    context.answer(to_json(traced), lambda: _lines(traced, context.db) if full else _summary(traced))
    options = "".join(f" --sweep {shell_word(name)}" for name in sweep or names(record))
    options += f" --tables {shell_word(str(tables))}" if tables else ""
    if full:
        again = kdx_command("trace", table, traced.row, traced.column, options=f"{options}{context.options} --grid")
        say(f"compute this cell again with: {again} > {AGAIN}.yaml && kdx sweep {AGAIN}.yaml --db {AGAIN}.db")
    else:
        place = [table, row, *([column] if column else [])]
        rest = kdx_command("trace", *place, options=f"{options}{context.options} --full")
        say(f"all settings, data and attempts with: {rest}")


def _no_table(table: str, sweep: str, known: list[str], grids: Mapping[str, Mapping[str, Any]]) -> KdxError:
    """The error for a missing table, which names a sweep that has it."""
    others = [name for name, tables in table_names(grids).items() if table in tables]
    hint = did_you_mean(table, known)
    if len(others) == 1:
        hint = f"sweep `{others[0]}` has it: --sweep {shell_word(others[0])}"
    elif others:
        hint = f"several sweeps have it, name one with --sweep: {', '.join(others)}"
    return KdxError(f"sweep `{sweep}` has no table `{table}`", allowed=known, hint=hint)


def _summary(trace: Trace) -> Iterator[str]:
    """Return in a line each: the number, its runs, the commit that computed them, and the command that planned them."""
    commits = [_commit(run.provenance.environment or {}) for run in _behind(trace)]
    unknown = "a command that was not recorded"
    yield from fact_lines(
        {
            "value": f"{_number(trace)} of {trace.table}, {trace.row}, {trace.column}",
            "of": _runs(trace),
            "commit": "; ".join(dict.fromkeys(commits)),
            "planned by": "; ".join(command or unknown for command in trace.planned.values()),
        }
    )


def _commit(environment: Mapping[str, Any]) -> str:
    if not environment:
        return "not recorded"
    commit, dirty, _ = str(environment.get("commit") or "").partition("-dirty")
    if not commit:
        return f"not recorded: kdx {environment.get('kdx')} was installed, not run from a clone"
    return f"{commit} {'with changes that were not committed' if dirty else '(clean)'}"


def _lines(trace: Trace, db: str) -> Iterator[str]:
    cell = trace.cell
    yield sanitize_lines(f"{trace.table}: {trace.row}, {trace.column}")
    yield f"  {_number(trace)} of {_runs(trace)}"
    yield ""
    for name, command in trace.planned.items():
        yield f"sweep     {sanitize_lines(name)}, in {sanitize_lines(db)}"
        yield f"planned   {f'by: {sanitize_lines(command)}' if command else 'by a command that was not recorded'}"
    yield f"cell      {trace.record.id}"
    if trace.evaluation is not None:
        settings = ", ".join(f"{name} {word}" for name, word in trace.evaluation.words.items())
        yield f"evaluation  {sanitize_lines(trace.evaluation.request.name)}: {sanitize_lines(settings)}"
    yield ""
    yield from yaml_lines(trace.record.spec.plain)
    yield ""
    head = ("", "run", "seed", "state", cell.selected_by.name, "at step", trace.scored, "seconds")
    yield from table(head, map(_run, trace.runs), indent=2)
    for run in (each.record for each in trace.runs):
        if run.error:
            yield f"  run {run.id}: {sanitize_lines(run.error)}"
        if run.invalidated:
            yield f"  run {run.id} is excluded from reports: {sanitize_lines(run.invalidated)}"
    yield ""
    attempts = [(run.record.id, *attempt_row(attempt)) for run in trace.runs for attempt in run.attempts]
    yield from table(("run", *ATTEMPT), attempts, indent=2, spare=("took",), optional=("changed",))
    scored = (cell.selected_by.name, trace.scored)
    for origin, runs in trace.origins:
        yield ""
        yield numbers_of("run", runs)
        yield from fact_lines(
            {
                "data": origin.data or "not recorded",
                "code": origin.code or "not recorded",
                "environment": ", ".join(f"{name} {value}" for name, value in (origin.environment or {}).items()),
                **{name: str(fact) for name, fact in (origin.facts or {}).items()},
                **{name: text for name, text in (origin.definitions or {}).items() if name in scored},
            }
        )


def _number(trace: Trace) -> str:
    cell = trace.cell
    if cell.value is None:
        text = words(cell, show_n=False)
        return "  ".join(filter(None, (text.score, text.note)))
    shown = rounded(cell.value, cell.metric.name)
    exact = f" ({cell.value!r})" if isfinite(cell.value) and float(shown) != cell.value else ""
    return f"{shown}{exact}: {sanitize_lines(trace.scored)}"


def _behind(trace: Trace) -> Sequence[TracedRun]:
    """Return the runs whose scores make the number; all runs where there is none."""
    if trace.cell.value is None:
        return trace.runs
    return [run for run in trace.runs if (run.score is not None if trace.cell.shown is Shown.MEAN else run.selected)]


def _runs(trace: Trace) -> str:
    """Return these runs, and how the number comes from them."""
    cell, behind = trace.cell, [run.record for run in _behind(trace)]
    runs = f"{numbers_of('run', [run.id for run in behind])}, {numbers_of('seed', [run.seed for run in behind])}"
    if cell.value is None:
        return f"{runs}: {', '.join(dict.fromkeys(run.state for run in behind))}"
    if cell.shown is Shown.MEAN:
        return f"{runs}: their mean"
    return f"{runs}: the best {cell.selected_by.name} of {count_of(cell.planned, 'seed')}"


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
