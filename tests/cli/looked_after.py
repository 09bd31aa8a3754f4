"""A folder with results, whose runs and files are as a test wants them."""

import json
from pathlib import Path
from typing import Any

from grids import TINY
from typer.testing import CliRunner, Result

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, folder_of, log_of
from kdx.store import claims, reading, recording
from kdx.store.database import open_database
from kdx.store.recording import RunWriter
from kdx.store.records import RunRecord
from kdx.sweep.lease_holder import lease_holder
from kdx.training.checkpoint import CheckpointFiles

DB = Path("runs.db")


def typed(*words: str) -> Result:
    """A command with its exit code and what it says; its `KdxError` is raised."""
    result = CliRunner().invoke(app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*words: str) -> KdxError:
    """The one message of a command that is refused, and writes no result."""
    result = CliRunner().invoke(app, words)
    if not isinstance(result.exception, KdxError):
        raise result.exception or AssertionError("it was not refused")
    assert result.stdout == ""
    return result.exception


def registered(text: str, file: str = "grid.yaml") -> tuple[RunRecord, ...]:
    """The runs of the sweep of a grid with this text, which wait to be run."""
    Path(file).write_text(text)
    plan = load_grid(file)
    with open_database(DB, write=True, create=True) as database:
        return reading.runs(database, recording.register(database, plan))


def planned(seeds: int = 3, name: str = "tiny", more: str = "") -> tuple[RunRecord, ...]:
    """A sweep of one cell that waits to be run; `more` is the rest of its grid."""
    return registered((TINY % {"steps": 10, "seeds": seeds}).replace("name: tiny", f"name: {name}") + more)


def claimed(run: RunRecord, owner: str = "me", lease: float = 60.0) -> None:
    with open_database(DB, write=True) as database:
        assert claims.claim(database, run.id, owner, lease)


def completed(run: RunRecord, score: float = 1.0) -> None:
    """The run is completed, and has its weights."""
    claimed(run)
    with open_database(DB, write=True) as database:
        recording.RunWriter(database, run.id, "me", 1).complete(score, 10, score, {}, 10)
    checkpoints(run).write("best", 10, {"seed": run.seed})


def failed(run: RunRecord, error: str = "ValueError: no") -> None:
    """The run has failed in its first attempt."""
    claimed(run)
    with open_database(DB, write=True) as database:
        RunWriter(database, run.id, "me", 1).fail(error, "Traceback …", 0)


def diverged(run: RunRecord) -> None:
    claimed(run)
    with open_database(DB, write=True) as database:
        RunWriter(database, run.id, "me", 1).diverge("loss is nan", 3)


def interrupted(run: RunRecord, step: int) -> None:
    """The run was stopped after this step, without a checkpoint."""
    claimed(run)
    with open_database(DB, write=True) as database:
        RunWriter(database, run.id, "me", 1).interrupt(step)


def checkpoints(run: RunRecord) -> CheckpointFiles:
    return CheckpointFiles(files_beside(DB) / folder_of(run))


def states() -> list[str]:
    with open_database(DB, write=False) as database:
        return [run.state.value for run in reading.load_sweep(database).runs]


def names(run: RunRecord) -> list[str]:
    """Files of a run, without step and checksum."""
    folder = files_beside(DB) / folder_of(run)
    found = folder.iterdir() if folder.exists() else ()
    return sorted(".".join([path.name.split("-0")[0], path.suffix[1:]]) for path in found)


def learned(run: RunRecord, loss: float) -> None:
    """A completed run with curves, a test and a log."""
    claimed(run, owner=lease_holder())
    with open_database(DB, write=True) as database:
        writer = RunWriter(database, run.id, reading.load_run(database, run.id).owner or "", 1)
        writer.begin({"torch": "2.13", "host": "here"}, "data", "code", 0, None, {})
        rows = [("train/loss", step, loss / step) for step in range(1, 11)]
        writer.record([*rows, ("valid/loss", 5, loss), ("valid/loss", 10, loss / 2), ("test/loss", 10, loss / 3)], 10)
        writer.complete(loss / 2, 10, loss / 3, {}, 10)
        log = log_of(files_beside(database.location), run)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("step 1\n")


def of_two_kernels(seeds: int = 2) -> tuple[RunRecord, ...]:
    """A sweep of two cells that wait to be run."""
    return registered(TINY % {"steps": 10, "seeds": seeds} + "axes: {kernel: [rbf, linear]}\n")


def shown(*words: str) -> dict[str, Any]:
    """What `kdx show` says to programs."""
    return json.loads(typed("show", *words, "--json").stdout)
