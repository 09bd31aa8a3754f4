"""The commands that messages suggest to continue, to repeat, or to take up runs again."""

from collections.abc import Sequence
from pathlib import Path

from kdx.cli.context import Context
from kdx.components.find import folders_of, is_found, is_in_file
from kdx.shell import kdx_command, shell_word
from kdx.store.components import hashes_of
from kdx.store.database import Database
from kdx.store.reading import grids, names, sweep_of
from kdx.store.records import RunState


def computing_options(context: Context, database: Database, sweep: str, components: Path | None = None) -> str:
    """Return the options of a command that computes: the database, and the folder of custom components if needed.

    Args:
        components: the folder that the user named; None if the components were found.
    """
    # Somebody may have removed the sweep meanwhile.
    sweep_id = names(database).get(sweep)
    hashes = hashes_of(database, sweep_id) if sweep_id is not None else {}
    files = [item for item in hashes.items() if is_in_file(item[0])]
    grid = grids(database).get(sweep, {}).get("file", "")
    if not files or (components is None and all(is_found(*item, folders_of(grid)) for item in files)):
        return context.options
    folder, here = (components or Path(grid).parent).absolute(), Path.cwd()
    shown = str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
    known = all(is_found(*item, (folder,)) for item in files)
    return f" --components {shell_word(shown) if known else 'FOLDER'}{context.options}"


def resume(sweep: str, options: str) -> str:
    """Return the command that resumes a sweep.

    Args:
        options: of `computing_options`.
    """
    return kdx_command("resume", sweep, options=options)


def retry(state: RunState, sweep: str, options: str) -> str:
    """Return the command that trains the runs of a sweep in a state again, which kdx resume leaves as they are.

    Args:
        options: of `computing_options`.
    """
    return kdx_command("retry", sweep, f"state={state}", options=options)


def evaluate(sweep: str, options: str, *, failed: bool) -> str:
    """Return the command that makes the evaluations of a sweep that it lacks, and those that failed."""
    return kdx_command("evaluate", sweep, options=f"{' --failed' if failed else ''}{options}")


def retry_runs(context: Context, database: Database, run_ids: Sequence[int]) -> str:
    """Return the command that repeats runs of one sweep by their numbers."""
    sweep = sweep_of(database, run_ids[0]) if run_ids else None
    options = computing_options(context, database, sweep) if sweep else context.options
    return kdx_command("retry", *map(str, run_ids), options=options)
