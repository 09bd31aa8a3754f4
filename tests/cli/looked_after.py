"""A folder with results, whose runs and files are as a test wants them."""

from pathlib import Path

from grids import TINY
from typer.testing import CliRunner, Result

from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.run_files.files import files_beside, folder_of
from kdx.store import leases, reading, recording
from kdx.store.database import open_database
from kdx.store.records import RunRecord
from kdx.training.checkpoint import CheckpointFiles

DB = Path("runs.db")


def typed(*words: str) -> Result:
    """A command with its exit code and what it says; its `KdxError` is raised."""
    result = CliRunner().invoke(app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*words: str) -> KdxError:
    try:
        typed(*words)
    except KdxError as error:
        return error
    raise AssertionError("it was not refused")


def planned(seeds: int = 3, name: str = "tiny") -> tuple[RunRecord, ...]:
    """A sweep of one cell that waits to be run."""
    Path("grid.yaml").write_text((TINY % {"steps": 10, "seeds": seeds}).replace("name: tiny", f"name: {name}"))
    plan = load_grid("grid.yaml")
    with open_database(DB, write=True, create=True) as database:
        sweep_id = recording.register(database, plan, plan.grid)
        return reading.runs(database, sweep_id)


def claimed(run: RunRecord, owner: str = "me", lease: float = 60.0) -> None:
    with open_database(DB, write=True) as database:
        assert leases.claim(database, run.id, owner, lease)


def completed(run: RunRecord, score: float = 1.0) -> None:
    """The run is completed, and has its weights."""
    claimed(run)
    with open_database(DB, write=True) as database:
        recording.RunWriter(database, run.id, "me", 1).complete(score, 10, score, {}, 10)
    checkpoints(run).write("best", 10, {"seed": run.seed})


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
