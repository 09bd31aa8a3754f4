"""`kdx export`: writes a sweep's numbers, weights and translations to files."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli.console import say
from kdx.cli.context import Answering, Context
from kdx.cli.named_runs import load_named
from kdx.cli.options import Sweep
from kdx.cli.report import TEXTS
from kdx.cli.suggest import computing_options, resume, retry_runs
from kdx.cli.wording import count_of
from kdx.components.find import laid_out
from kdx.errors import Faults, KdxError
from kdx.grid.load import load_grid
from kdx.grid.tuned_grid import tuned_grid
from kdx.mirrors.choice import MirrorName, opened_mirror
from kdx.mirrors.follow import Follower
from kdx.report.folder import encoded, refuse_existing, write_folder, write_new_file
from kdx.report.selection.best_seed import selected_runs
from kdx.report.writers.arrow import to_parquet
from kdx.report.writers.rows import to_csv
from kdx.run_files.files import content, files_beside, final_weights, refuse_absent
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.sanitize import spelled_out
from kdx.store.backend import Rows
from kdx.store.components import hashes_of, load_components
from kdx.store.database import Database, open_database
from kdx.store.plan_from_records import plan_of, with_searches
from kdx.store.reading import outputs_of
from kdx.store.records import RunRecord, RunState, SweepRecord
from kdx.store.views import TYPES
from kdx.tune.search import with_winners

_Files = list[tuple[str, Iterable[bytes]]]
"""Path in the folder, and contents in parts."""


class ExportFormat(StrEnum):
    """What `kdx export` writes."""

    CSV = "csv"
    PARQUET = "parquet"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    TRACKIO = "trackio"
    WANDB = "wandb"


def export(
    context: Answering,
    sweep: Sweep = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="The new folder.")] = None,
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv or parquet: tables in --to FOLDER; tensorboard, mlflow, trackio or wandb: the runs there.",
        ),
    ] = ExportFormat.CSV,
    weights: Annotated[bool, typer.Option("--weights", help="The selected runs' weights, too.")] = False,
    outputs: Annotated[bool, typer.Option("--outputs", help="The selected runs' test translations, too.")] = False,
    components: Annotated[
        bool, typer.Option("--components", help="Only the recorded sources of the sweep's custom components.")
    ] = False,
    tuned: Annotated[
        Path | None,
        typer.Option(
            "--tuned",
            metavar="FILE",
            help="Only the settings that the sweep's searches found, as a grid that tunes nothing, to this new file.",
        ),
    ] = None,
) -> None:
    """Export the cells, runs and curves of a sweep to a folder.

    Tables have the columns of kdx query --schema. Weights and translations are those of the run with the best
    validation score in each cell; files have the id of the run: weights/run-7.ckpt, outputs/run-7.txt. Read the sources
    of custom components before kdx resume --components runs them.

    Example: kdx export quickstart --to quickstart-results --weights

    Example: kdx export quickstart --format mlflow

    Example: kdx export rates --tuned tuned.yaml
    """
    options = {"--format": form != ExportFormat.CSV, "--to": to, "--weights": weights, "--outputs": outputs}
    given = {name for name, value in {**options, "--components": components, "--tuned": tuned}.items() if value}
    if form not in (ExportFormat.CSV, ExportFormat.PARQUET):
        _refuse(given - {"--format"}, f"--format {form} sends runs to {form} and writes no files")
        _send(context, sweep, MirrorName(form))
        return
    if tuned is not None:
        _refuse(given - {"--tuned"}, "--tuned writes one file and nothing else")
        _write_tuned(context, sweep, tuned.expanduser())
        return
    if components:
        _refuse(given - {"--components", "--to"}, "--components writes sources and nothing else")
    if to is None:
        raise KdxError("there is no folder to write to", hint="name one: --to FOLDER")
    to = to.expanduser()
    refuse_existing(to)
    # Everything is read from one state of the database.
    with context.read() as database:
        record = load_named(database, sweep, context)
        selected = sorted(selected_runs(record).values(), key=lambda run: run.id)
        if components:
            files = _sources(database, record, context)
        else:
            tables = _tables(database, record.name)
            files = [(f"{name}.{form}", _table(rows, form)) for name, rows in tables.items()]
            files += _weights(database, selected, context) if weights else []
            files += _outputs(database, record.name, selected, context) if outputs else []
    paths = [str(path) for path in write_folder(to, files)]
    names = [str(Path(path).relative_to(to)) for path in paths]
    context.answer({"sweep": record.name, "folder": str(to), "files": names}, lambda: paths)
    if components:
        say(f"exported the sources of the components of {record.name}; nothing of them was run")
    else:
        counts = f"{count_of(len(record.distinct_cells), 'cell')} and {count_of(tables['runs'].count, 'run')}"
        say(f"exported {counts} of {record.name}, {len(selected)} of them selected")


def _refuse(others: set[str], problem: str) -> None:
    if others:
        raise KdxError(problem, hint=f"leave {' and '.join(sorted(others))} out")


def _table(rows: Rows, form: ExportFormat) -> Iterable[bytes]:
    if form == ExportFormat.CSV:
        return encoded(to_csv(rows.columns, rows))
    types = {column: TYPES.get(column, str) for column in rows.columns}
    return [to_parquet([dict(zip(rows.columns, row, strict=True)) for row in rows], types)]


def _send(context: Context, sweep: str | None, program: MirrorName) -> None:
    """Bring another program up to date with the runs of a sweep; what it has stays."""
    # Not one transaction: a program that is slow to take the numbers would keep sweeps from recording theirs.
    with open_database(context.db, write=False) as database:
        record = load_named(database, sweep, context)
        # A run that trains may have a mirror that follows it.
        over = [run.id for run in record.runs if run.attempt and run.state is not RunState.RUNNING]
        beside = files_beside(database.location).with_suffix("")
        again = context.command("export", record.name, options=f" --format {program}")
        # Other programs greet and take leave on standard output.
        with (
            redirect_stdout(sys.stderr),
            opened_mirror(program, beside, hint=f"correct this, then {again} sends the rest") as mirror,
        ):
            follower = Follower(database, mirror)
            with typer.progressbar(over, label=f"to {program}", file=sys.stderr) as runs:
                for run_id in runs:
                    follower.send([run_id])
            follower.close()
    new, where = len(follower.new), f": {mirror.place}" if mirror.place else ""
    counts = {"runs": len(over), "new": new}
    context.answer({"sweep": record.name, "program": program, **counts, "place": mirror.place}, list)
    say(f"exported {count_of(len(over), 'run')} of {record.name} to {program}, {new} with new numbers{where}")


def _sources(database: Database, sweep: SweepRecord, context: Context) -> _Files:
    used = hashes_of(database, sweep.id)
    with database.read() as connection:
        recorded = load_components(connection, used)
    if not used:
        raise KdxError(f"sweep `{sweep.name}` has no custom components", place=context.db)
    if lost := used.keys() - {component.word for component in recorded}:
        problem = f"the database has no source of {', '.join(sorted(lost))} with the hash of its cells"
        raise KdxError(problem, place=context.db)
    return [(path, [text.encode()]) for path, text in laid_out(recorded).items()]


def _write_tuned(context: Context, sweep: str | None, file: Path) -> None:
    refuse_existing(file)
    with context.read() as database:
        record = load_named(database, sweep, context)
        if not record.searches:
            raise KdxError(f"sweep `{record.name}` tunes nothing", place=context.db, hint="kdx explain tune")
        plan = with_winners(database, with_searches(plan_of(record), record.searches))
        again = resume(record.name, computing_options(context, database, record.name))
    won = sum(cell.won for cell in plan.cells)
    if not won:
        raise KdxError(f"no search of `{record.name}` has found a winner yet", place=context.db, hint=again)
    write_new_file(file, tuned_grid(plan, file))
    try:
        has_all = {cell.id for cell in plan.trained} <= {cell.id for cell in load_grid(file).cells}
    except Faults:
        has_all = False
    if not has_all:
        file.unlink()
        problem = (
            "no overrides of this grid give the winners: it tunes a choice of layers, or its sub-grids have overrides"
        )
        raise KdxError(
            problem, place=plan.file, hint=f"write them by hand; {context.command('show', record.name)} has them"
        )
    context.answer({"sweep": record.name, "file": str(file)}, lambda: [str(file)])
    if lost := len(plan.cells) - len(plan.trained):
        say(f"note: {count_of(lost, 'cell')} without a winner, so the grid has the settings that were not tuned there")
    say(f"exported {count_of(won, 'winner')}; next: {context.command('sweep', str(file))}")


def _tables(database: Database, sweep: str) -> dict[str, Rows]:
    """Return the views of the sweep's cells, runs and curves."""
    runs = "SELECT run_id FROM runs WHERE sweep = :sweep"
    statements = {
        "cells": "SELECT * FROM cells WHERE sweep = :sweep ORDER BY ordinal",
        "runs": "SELECT * FROM runs WHERE sweep = :sweep ORDER BY run_id",
        "curves": f"SELECT * FROM curves WHERE run_id IN ({runs}) ORDER BY run_id, name, step",
    }
    return {name: database.rows(statement, {"sweep": sweep}) for name, statement in statements.items()}


def _weights(database: Database, runs: list[RunRecord], context: Context) -> _Files:
    refuse_stranger(database)
    files = files_beside(database.location)
    weights = {run.id: final_weights(files, run) for run in runs}
    if missing := [run for run, file in weights.items() if file is None]:
        refuse_absent(files)
        problem = f"runs without weights: {', '.join(map(str, missing))}"
        hint = f"{retry_runs(context, database, missing)} makes them anew; or leave --weights out"
        raise KdxError(problem, place=str(files), hint=hint)
    return [(f"weights/run-{run}.ckpt", content(files, file)) for run, file in weights.items() if file]


def _outputs(database: Database, sweep: str, runs: list[RunRecord], context: Context) -> _Files:
    texts = outputs_of(database, [run.id for run in runs], TEXTS)
    if not texts:
        raise KdxError(f"no selected run of `{sweep}` has {TEXTS}", place=context.db, hint="leave --outputs out")
    # Each text is one line, whatever it contains.
    return [(f"outputs/run-{run}.txt", encoded(map(spelled_out, lines))) for run, lines in texts.items()]
