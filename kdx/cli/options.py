"""Options that several commands share.

One that describes a place or a habit can be set by `KDX_…` in the environment. One that acts, destroys, selects or
changes what is shown cannot: set once for all, it would make another command of what somebody types.
"""

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kdx.cli import completion
from kdx.errors import KdxError, did_you_mean
from kdx.run_options import RunOptions
from kdx.shell import kdx_command, shell_word
from kdx.store.refusals import FILES, set_password_apart
from kdx.sweep.at_a_time import AUTO, AtATime, take_devices
from kdx.vocabulary import IfChanged

if TYPE_CHECKING:
    from kdx.store.database import Database


def without_password(address: str) -> str:
    """The address of a database as commands show it, pass it on and open it."""
    return set_password_apart(address)


Db = Annotated[
    str,
    typer.Option(
        "--db",
        envvar="KDX_DB",
        metavar="PATH",
        callback=without_password,
        help="The results database, a file or an address.",
    ),
]
_FILES_BEFORE = os.environ.get(FILES)
"""What KDX_FILES said before a command set it."""


def name_folder(given: Path | None) -> Path | None:
    """Lets KDX_FILES name the folder, for this process and those that it starts."""
    if given is not None:
        # Workers and jobs of Slurm have other working folders.
        os.environ[FILES] = str(given.expanduser().absolute())
    return given


Files = Annotated[
    Path | None,
    typer.Option(
        "--files",
        envvar=FILES,
        metavar="FOLDER",
        file_okay=False,
        callback=name_folder,
        help="Where checkpoints, weights and logs lie, each database's in a folder of its own; beside the database if "
        "not said.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]


class Format(StrEnum):
    """The formats of tables and claims."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    HTML = "html"


def format_named(word: str) -> Format:
    """The format of this name.

    Raises:
        KdxError: there is none; JSON has an option of its own.
    """
    try:
        return Format(word)
    except ValueError:
        hint = did_you_mean(word, Format) or "--json writes JSON, for programs"
        raise KdxError(f"--format `{word}`", allowed=tuple(Format), hint=hint) from None


TableFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        envvar="KDX_FORMAT",
        parser=format_named,
        metavar="|".join(Format),
        autocompletion=lambda: [*Format],
        help="How tables are written.",
    ),
]
OnlyTable = Annotated[
    str | None,
    typer.Option("--table", autocompletion=completion.tables, help="Only the table of this name."),
]
Tables = Annotated[
    Path | None,
    typer.Option(
        "--tables",
        metavar="FILE",
        help="A YAML file with `tables:` as a grid has them, in the place of the grid's own.",
    ),
]


OfSweeps = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        autocompletion=completion.sweeps_and_grids,
        help="Name of a sweep, or its grid file, any number of times; the one planned last if not said.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="PAPER",
        help="Published values beside ours: tsai2019, shaw2018, or a file.",
    ),
]
PairedAr = Annotated[
    bool,
    typer.Option(
        "--paired-ar",
        help="Differences of BLEU with translations exchanged at random, as sacrebleu's --paired-ar.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", metavar="N|A,B,…", help="Instead of the grid's: how many, or which."),
]
MaxRuns = Annotated[int, typer.Option("--max-runs", envvar="KDX_MAX_RUNS", min=1, help="Refuse a larger grid.")]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Take the place of another grid's sweep of the same name; nothing is deleted."),
]
Components = Annotated[
    Path | None,
    typer.Option(
        "--components",
        metavar="FOLDER",
        help="The folder with the files of the sweep's custom components, whose code is run.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        autocompletion=completion.settings,
        metavar="KEY=VALUE",
        help="Lay a value over what the grid says, such as training.steps=100 or seeds=5; any number of times.",
    ),
]
WithinBudget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="6h|90m|30s|40gpuh|40coreh",
        help="Stop when so much is used, and begin no run that would not be done by then: wall time, or hours times"
        " runs at a time.",
    ),
]
MOST_AT_A_TIME = 1024
MOST_RUNS = 10_000
MOST_SEEDS = 1_000_000
DATABASE = "runs.db"


def at_a_time_options(
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-w",
            envvar="KDX_WORKERS",
            min=1,
            max=MOST_AT_A_TIME,
            help="Runs at a time; if not said, one on each GPU, or without any as many as there are cores.",
        ),
    ] = None,
    per_gpu: Annotated[
        str | None,
        typer.Option(
            "--per-gpu",
            envvar="KDX_PER_GPU",
            metavar="N|auto",
            help="Runs at a time on each GPU; auto: as many as fit into its memory, which the first run shows.",
        ),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices",
            envvar="KDX_DEVICES",
            metavar="0,2|none",
            help="The GPUs to take, as nvidia-smi numbers them; none: compute on the processor.",
        ),
    ] = None,
) -> AtATime:
    """How many runs go at a time, from the flags of every command that starts runs.

    Devices are those of this process and of all that it starts from then on.

    Raises:
        KdxError: `--per-gpu` or `--devices` has no such value.
    """
    if devices is not None:
        take_devices(devices)
    if per_gpu is None or per_gpu == AUTO:
        return AtATime(workers, per_gpu)
    if per_gpu.isascii() and per_gpu.isdigit() and 1 <= int(per_gpu[:5]) <= MOST_AT_A_TIME and len(per_gpu) < 5:
        return AtATime(workers, int(per_gpu))
    raise KdxError(f"--per-gpu `{per_gpu}`", allowed=f"a number from 1 to {MOST_AT_A_TIME}, or {AUTO}")


def run_options(
    hang_after: Annotated[
        float,
        typer.Option(
            "--hang-after",
            envvar="KDX_HANG_AFTER",
            metavar="SECONDS",
            min=1,
            help="End and try again a run that gives no sign of life for so long.",
        ),
    ] = RunOptions.hang_after,
    if_changed: Annotated[
        IfChanged,
        typer.Option(
            "--if-changed",
            help="What to do with a run that began on another processor, or under other libraries, threads, data or "
            "code, so that its bits would differ: refuse, restart it, or continue and mark it as not bit-exact.",
        ),
    ] = RunOptions.if_changed,
) -> RunOptions:
    """The options of all runs of a command, from the flags that every command has which starts runs."""
    return RunOptions(hang_after=hang_after, if_changed=if_changed)


def with_options(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the flags of each function in the place of the parameter that it is named for."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command)
        flags = {name: inspect.signature(make).parameters for name, make in makers.items()}

        @functools.wraps(command)
        def with_flags(**given: Any) -> None:
            made = {name: make(**{flag: given.pop(flag) for flag in flags[name]}) for name, make in makers.items()}
            command(**given, **made)

        # By keyword, as Typer calls it, so that one without a default may follow others.
        parameters: list[inspect.Parameter] = []
        for one in own.parameters.values():
            parameters += flags[one.name].values() if one.name in flags else [one]
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
        # Typer reads these.
        with_flags.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_flags

    return decorated


with_run_options = with_options(options=run_options, at_a_time=at_a_time_options)
"""Gives a command that starts runs the flags of `options` and `at_a_time` in the places of these parameters."""


def in_database(db: str) -> str:
    """The options of a suggested command that name the database and the folder of files; empty for the default.

    No database is named where KDX_DB has the password that such an option would lack.
    """
    given = os.environ.get("KDX_DB", "")
    known = db == DATABASE or (given != db and "://" in given and without_password(given) == db)
    files = os.environ.get(FILES)
    named = not files or (_FILES_BEFORE and Path(files) == Path(_FILES_BEFORE).expanduser().absolute())
    return ("" if known else f" --db {shell_word(db)}") + ("" if named else f" --files {shell_word(str(files))}")


def in_database_with_components(db: str, database: "Database", sweep: str, components: Path | None = None) -> str:
    """The same options of a command that computes: with the folder of the sweep's custom components, if it needs one.

    Args:
        components: where the user said that they are; None if they were found.
    """
    # SQLAlchemy: every command imports this module, and kdx query and kdx explain are quick without.
    from kdx.components.find import folders_of, is_found, is_in_file
    from kdx.store.components import hashes_of
    from kdx.store.reading import grids, names

    # Somebody may have removed the sweep meanwhile.
    sweep_id = names(database).get(sweep)
    hashes = hashes_of(database, sweep_id) if sweep_id is not None else {}
    files = [one for one in hashes.items() if is_in_file(one[0])]
    grid = grids(database).get(sweep, {}).get("file", "")
    if not files or (components is None and all(is_found(*one, folders_of(grid)) for one in files)):
        return in_database(db)
    folder, here = (components or Path(grid).parent).absolute(), Path.cwd()
    shown = str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
    known = all(is_found(*one, (folder,)) for one in files)
    return f" --components {shell_word(shown) if known else 'FOLDER'}{in_database(db)}"


def resume(sweep: str, where: str) -> str:
    """Return the command that resumes a sweep.

    Args:
        where: of `in_database_with_components`.
    """
    return kdx_command("resume", sweep, options=where)


def retry_failed(sweep: str, where: str) -> str:
    """Return the command that resumes a sweep and tries its failed runs again."""
    return kdx_command("resume", sweep, options=f" --failed{where}")


def retry_runs(db: str, database: "Database", run_ids: Sequence[int]) -> str:
    """Return the command that repeats runs of one sweep by their numbers, with the folder of its custom components."""
    # SQLAlchemy, as in `in_database_with_components`.
    from kdx.store.reading import sweep_of

    sweep = sweep_of(database, run_ids[0]) if run_ids else None
    where = in_database_with_components(db, database, sweep) if sweep else in_database(db)
    return kdx_command("retry", *map(str, run_ids), options=where)


def retry_cancelled(sweep: str, where: str) -> str:
    """Return the command that takes up the cancelled runs of a sweep again, which kdx resume leaves as they are.

    Args:
        where: of `in_database_with_components`.
    """
    return kdx_command("retry", sweep, "state=cancelled", options=where)


def grid_options(seeds: str | None, given: Sequence[str] | None) -> str:
    """The options of a suggested command that change a grid as `--seeds` and `--set` of this one do."""
    words = (("--seeds", seeds) if seeds else (), *(("--set", one) for one in given or ()))
    return "".join(f" {shell_word(word)}" for pair in words for word in pair)


def seeds_of(text: str | None) -> tuple[int, ...] | None:
    """Parses `--seeds`: `5` means seeds 0 to 4; `0,7` and `7,` are lists.

    Raises:
        KdxError: anything else.
    """
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if len(words) > 1 and not words[-1]:
        words.pop()
    if all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        numbers = tuple(int(word) for word in words)
        if "," not in text and 1 <= numbers[0] <= MOST_SEEDS:
            return tuple(range(numbers[0]))
        if "," in text and len(set(numbers)) == len(numbers):
            return numbers
    raise KdxError(f"--seeds `{text}`", allowed="a number such as 5, or different seeds such as 0,1,7")
