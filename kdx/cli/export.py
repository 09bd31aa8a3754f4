"""`kdx export`: writes a sweep's numbers, weights and translations to files."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kdx.cli import completion
from kdx.cli.amounts import count_of
from kdx.cli.console import out, out_json, say
from kdx.cli.options import DATABASE, Db, Files, Json, retry_runs
from kdx.cli.sweep_argument import load_named, plan_in_file
from kdx.components.find import laid_out
from kdx.errors import KdxError
from kdx.report.folder import encoded, refuse_existing, write_folder
from kdx.report.selection.best_seed import selected_runs
from kdx.report.writers.rows import to_csv, to_json
from kdx.run_files.files import content, files_beside, final_weights
from kdx.run_files.folder_ownership import refuse_stranger
from kdx.sanitize import spelled_out
from kdx.store.components import hashes_of, load_components
from kdx.store.database import Database, open_database
from kdx.store.reading import outputs_of
from kdx.store.records import RunRecord, SweepRecord
from kdx.store.rows import Rows

TEXTS = "test/translations"


class ExportFormat(StrEnum):
    """The formats of exported tables."""

    CSV = "csv"
    JSON = "json"


def export(
    sweep: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.sweeps_and_grids,
            metavar="SWEEP|GRID.yaml",
            help="A sweep, or its grid file; the one planned last if not said.",
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", metavar="FOLDER", help="The folder to be; needed.")] = None,
    db: Db = DATABASE,
    files_in: Files = None,
    format: Annotated[ExportFormat, typer.Option("--format", help="Of the tables.")] = ExportFormat.CSV,
    weights: Annotated[bool, typer.Option("--weights", help="Also the selected runs' weights.")] = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Also the selected runs' translations of the test.")
    ] = False,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            autocompletion=completion.cells,
            metavar="ID",
            help="Only of this cell; its first digits will do.",
        ),
    ] = None,
    components: Annotated[
        Path | None,
        typer.Option(
            "--components",
            metavar="FOLDER",
            help="Only the recorded sources of the sweep's own components, to this new folder.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Export the cells, runs and curves of a sweep to a folder.

    Columns are those of kdx query --schema. Weights and translations are
    those of the run with the best validation score in each cell; files
    have the id of the run: weights/run-7.ckpt, outputs/run-7.txt.

    With --components the sources of its own kernels and other components are
    written instead. Read them before kdx resume --components runs them.

    Example: kdx export quickstart --to quickstart-results --weights
    """
    if components is not None:
        if to is not None:
            raise KdxError("--to and --components exclude each other", hint="write them one after the other")
        _write_components(db, sweep, components.expanduser(), json)
        return
    if to is None:
        raise KdxError("there is no folder to write to", hint="name one: --to FOLDER")
    to = to.expanduser()
    refuse_existing(to)
    # Everything is read from one state of the database.
    with open_database(db, write=False) as database, database.read():
        record = load_named(database, sweep, plan_in_file(sweep, "export"), db)
        cells = _cells(record, cell or [])
        tables = _tables(database, record.name, cell or [])
        best = selected_runs(record)
        selected = sorted((best[one] for one in cells if one in best), key=lambda run: run.id)
        texts = outputs_of(database, [run.id for run in selected], TEXTS) if outputs else {}
        if weights:
            refuse_stranger(database)
    lines = {ExportFormat.CSV: to_csv, ExportFormat.JSON: to_json}[format]
    files = [(f"{name}.{format}", encoded(lines(rows.columns, rows))) for name, rows in tables.items()]
    if weights:
        files += _weights(db, database, selected)
    if outputs:
        files += _outputs(db, record.name, texts)
    written = write_folder(to, files)
    if json:
        out_json({"sweep": record.name, "folder": str(to), "files": [str(path.relative_to(to)) for path in written]})
    else:
        out("\n".join(map(str, written)))
    counts = f"{count_of(tables['cells'].count, 'cell')} and {count_of(tables['runs'].count, 'run')}"
    say(f"exported {counts} of {record.name}, {len(selected)} of them selected")


def _write_components(db: str, sweep: str | None, folder: Path, json: bool) -> None:
    refuse_existing(folder)
    with open_database(db, write=False) as database:
        record = load_named(database, sweep, plan_in_file(sweep, "export"), db)
        used = hashes_of(database, record.id)
        with database.read() as connection:
            found = load_components(connection, used)
    if not used:
        raise KdxError(f"sweep `{record.name}` has no custom components", place=db)
    if lost := used.keys() - {component.word for component in found}:
        raise KdxError(f"the database has no source of {', '.join(sorted(lost))} with the hash of its cells", place=db)
    files = laid_out(found)
    written = write_folder(folder, [(path, [text.encode()]) for path, text in files.items()])
    if json:
        names = [str(path.relative_to(folder)) for path in written]
        out_json({"sweep": record.name, "folder": str(folder), "files": names})
    else:
        out("\n".join(map(str, written)))
    say(f"exported the sources of {', '.join(used)}; nothing of them was run")


def _cells(sweep: SweepRecord, asked: list[str]) -> list[str]:
    """Ids of the cells that begin with the given digits; of all cells if none are given."""
    known = list(dict.fromkeys(one.id for one in sweep.cells))
    for start in asked:
        if not any(one.startswith(start) for one in known):
            raise KdxError(f"sweep `{sweep.name}` has no cell `{start}`", allowed=[one[:8] for one in known])
    return [one for one in known if not asked or one.startswith(tuple(asked))]


def _tables(database: Database, sweep: str, asked: list[str]) -> dict[str, Rows]:
    """View → its rows of the cells that begin with the given digits; of all cells if none are given."""
    starts = {f"start{number}": start for number, start in enumerate(asked)}
    begins = " OR ".join(f"substr(cell_id, 1, {len(start)}) = :{name}" for name, start in starts.items())
    of_cells = f"sweep = :sweep AND ({begins})" if begins else "sweep = :sweep"

    def ask(statement: str) -> Rows:
        return database.rows(statement, {"sweep": sweep, **starts})

    return {
        "cells": ask(f"SELECT * FROM cells WHERE {of_cells} ORDER BY ordinal"),
        "runs": ask(f"SELECT * FROM runs WHERE {of_cells} ORDER BY run_id"),
        "curves": ask(
            f"SELECT * FROM curves WHERE run_id IN (SELECT run_id FROM runs WHERE {of_cells}) "
            "ORDER BY run_id, name, step"
        ),
    }


def _weights(db: str, database: Database, runs: list[RunRecord]) -> Iterator[tuple[str, Iterator[bytes]]]:
    files = files_beside(database.location)
    found = {run.id: final_weights(files, run) for run in runs}
    if missing := [run for run, file in found.items() if file is None]:
        raise KdxError(
            f"runs without weights: {', '.join(map(str, missing))}",
            place=str(files),
            hint=f"{retry_runs(db, database, missing)} makes them anew; or leave --weights out, or name other cells"
            " with --cell",
        )
    return ((f"weights/run-{run}.ckpt", content(files, file)) for run, file in found.items() if file)


def _outputs(db: str, sweep: str, texts: dict[int, list[str]]) -> Iterator[tuple[str, Iterator[bytes]]]:
    if not texts:
        raise KdxError(f"no selected run of `{sweep}` has {TEXTS}", place=db, hint="leave --outputs out")
    # Each text is one line, whatever it contains.
    return ((f"outputs/run-{run}.txt", encoded(map(spelled_out, lines))) for run, lines in texts.items())
