"""Imports go one way, and what must start fast loads nothing heavy."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kdx.cli.app import Kdx

ROOT = Path(__file__).parents[1]

# Package → the packages of kdx that it may import; those of `OPEN` are open to all.
ALLOWED: dict[str, set[str]] = {
    "vocabulary": set(),
    "version": set(),
    "errors": set(),
    "files": set(),
    "sanitize": set(),
    "shell": set(),
    "run_options": set(),
    "checkpoint_names": set(),
    "words": {"fingerprint"},
    "fingerprint": set(),
    "components": {"attention", "tasks", "metrics"},
    "tasks": set(),
    "metrics": {"tasks"},
    "api": {"grid", "report", "run_files", "store", "sweep"},
    "testing": {"attention"},
    "grid": {"attention", "tasks", "components", "metrics"},
    "store": {"grid", "components", "metrics"},
    "report": {"store", "grid", "components", "tasks", "metrics"},
    "attention": set(),
    "data": {"grid", "tasks", "fingerprint"},
    "cell_code": {"attention", "data", "grid", "tasks", "metrics", "fingerprint"},
    "models": {"attention", "data", "grid"},
    "training": {
        "components",
        "models",
        "data",
        "attention",
        "grid",
        "tasks",
        "cell_code",
        "run_options",
        "checkpoint_names",
    },
    "mirrors": {"store", "run_files"},
    "run_files": {"components", "training", "data", "store", "grid", "checkpoint_names"},
    "sweep": {
        "components",
        "training",
        "run_files",
        "report",
        "store",
        "grid",
        "data",
        "cell_code",
        "metrics",
        "run_options",
        "tune",
    },
    "tune": {"grid", "store"},
    "slurm": {"run_files"},
    "cli": {
        "tune",
        "slurm",
        "mirrors",
        "components",
        "sweep",
        "run_files",
        "report",
        "store",
        "grid",
        "data",
        "attention",
        "tasks",
        "metrics",
        "run_options",
    },
}
OPEN = {"vocabulary", "errors", "files", "words", "sanitize", "shell", "version"}
# Of attention these alone are there without torch: the words of each axis, with what is known of them.
FAMILIES = {"kernels", "positions", "values", "filters", "normalisers", "encodings", "mixers", "families"}
LIGHT = {"grid", "cell_code", "components"}

# Room of the report → the rooms that it may import; a room is a package, or a module beside them.
ROOMS: dict[str, set[str]] = {
    "statistics": set(),
    "selection": {"statistics"},
    "papers": {"selection", "statistics"},
    "table": {"wording", "papers", "selection", "statistics"},
    "seeds_until": {"table", "selection", "statistics"},
    "tables": {"seeds_until", "table", "papers", "selection", "statistics"},
    "wording": {"statistics"},
    "sheet": {"table"},
    "sheets": {"sheet", "wording", "tables", "table", "papers", "selection", "statistics"},
    "figures": {"sheets", "wording", "tables", "table", "selection", "statistics"},
    "writers": {
        *("made_by", "figures", "sheets", "sheet", "wording", "tables", "table", "papers", "selection", "statistics")
    },
    "made_by": set(),
    "check": {"writers", "trace", "wording", "made_by", "table", "selection"},
    "trace": {"writers", "sheets", "wording", "table", "selection"},
    "diff": set(),
    "folder": set(),
}

# Only these may import torch or Lightning, at any depth.
HEAVY = {"attention", "models", "training"}
HEAVY_FILES = {"data/batching.py"}
# Only worker code leads to training, and what gives a trained model back.
LEADS_TO_TRAINING = {
    "sweep/worker.py",
    "sweep/recorder.py",
    "sweep/evaluating.py",
    "sweep/hosts/fork_server_process.py",
    "run_files/load_run.py",
}

# What of the report steers a sweep: the comparisons of its tables, which are to mean there what they mean in print.
STEERS_SWEEPS = "kdx.report.seeds_until"

# What only one kind of database understands, and where it may stand: in the room of its backend, and in its tests. What
# the contract does to a database, `tests/store/conftest.py` has of each kind.
BACKENDS_ROOMS = ("sqlite", "postgresql")
DRIVERS = {"sqlite3", "psycopg", "sqlalchemy.dialects"}
DIALECT = ("PRAGMA", "json_each", "json_extract", "sqlite_master", "jsonb", "pg_")

NOT_FOR_HELP = "torch pytorch_lightning psycopg optuna sqlalchemy pydantic numpy scipy yaml"


def sources() -> list[Path]:
    return sorted((ROOT / "kdx").rglob("*.py"))


@cache
def imports(path: Path) -> set[str]:
    result: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            result |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return result


def place(path: Path) -> str:
    return str(path.relative_to(ROOT / "kdx"))


def package(path: Path) -> str:
    return place(path).split("/")[0].removesuffix(".py")


def test_imports_go_one_way():
    offenders = {}
    for path in sources():
        own = package(path)
        if own in ("__init__", "__main__"):
            continue
        names = {name for name in imports(path) if name.startswith("kdx.")}
        offenders[place(path)] = {name.split(".")[1] for name in names} - {own, *OPEN, "__version__"} - ALLOWED[own]
    assert {path: used for path, used in offenders.items() if used} == {}


def test_the_grid_reads_the_words_of_attention_and_nothing_else_of_it():
    offenders = {}
    for path in sources():
        if package(path) in LIGHT:
            used = {tuple(name.split(".")[2:]) for name in imports(path) if name.startswith("kdx.attention")}
            offenders[place(path)] = {steps[0] for steps in used} - FAMILIES | {
                step for _, *rest in used for step in rest if not step.isupper() and step != "options_of_words"
            }
    assert {path: used for path, used in offenders.items() if used} == {}


def test_a_sweep_asks_the_report_which_seeds_are_needed_and_nothing_else():
    used = {name for path in sources() if package(path) == "sweep" for name in imports(path)}
    assert {name for name in used if name.startswith("kdx.report")} <= {STEERS_SWEEPS, f"{STEERS_SWEEPS}.Needed"} | {
        f"{STEERS_SWEEPS}.needed_seeds"
    }


def modules() -> dict[str, Path]:
    """Dotted name → file."""
    dotted = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources()}
    return {name.removesuffix(".__init__"): path for path, name in dotted.items()}


def imported(known: dict[str, Path]) -> dict[str, set[str]]:
    """Module → the modules of kdx that it imports anywhere: at its top, inside a function, under TYPE_CHECKING."""
    result: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                result[name] |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                # Of `from kdx.grid import spec` the module is meant, not the package around it.
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                result[name] |= {name_inside if name_inside in known else str(node.module) for name_inside in inner}
    return {name: used & known.keys() - {name} for name, used in result.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """What is left once nothing that leads out of every circle is."""
    left = {name: set(used) for name, used in graph.items()}
    while ends := {name for name, used in left.items() if not used & left.keys()}:
        left = {name: used - ends for name, used in left.items() if name not in ends}
    return [[name, *sorted(used & left.keys())] for name, used in left.items()]


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions and under TYPE_CHECKING count: a circle that loads is a circle for a reader."""
    assert circles(imported(modules())) == []


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) != []


def test_the_rooms_of_the_report_import_downwards():
    def room(parts: list[str]) -> str:
        return parts[2] if len(parts) > 2 else ""

    offenders = {}
    for path in sources():
        if package(path) == "report":
            own = room(list(path.relative_to(ROOT).with_suffix("").parts)).replace("__init__", "")
            used = {room(name.split(".")) for name in imports(path) if name.startswith("kdx.report.")} - {own}
            offenders[place(path)] = used - ROOMS.get(own, set())
    assert {path: used for path, used in offenders.items() if used} == {}


def test_every_room_of_the_report_is_in_the_table():
    assert {path.stem for path in (ROOT / "kdx" / "report").iterdir() if path.stem[0] != "_"} == set(ROOMS)


def test_torch_is_imported_only_where_runs_are_trained():
    heavy = {"torch", "pytorch_lightning", "lightning_fabric"}
    offenders = []
    for path in sources():
        used = imports(path)
        if {name.split(".")[0] for name in used} & heavy:
            offenders += [place(path)] * (package(path) not in HEAVY and place(path) not in HEAVY_FILES)
        if any(name.startswith("kdx.training") for name in used) and package(path) != "training":
            offenders += [place(path)] * (place(path) not in LEADS_TO_TRAINING)
    assert offenders == []


def late_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Top-level package and line of each import inside a function; `__getattr__` of a module is for nothing else."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "__getattr__":
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                    yield str(name).partition(".")[0], node.lineno


def test_an_import_inside_a_function_has_its_reason_beside_it():
    """Once for each package and file."""
    offenders = []
    for path in sources():
        lines = path.read_text().splitlines()
        bare: dict[str, bool] = {}
        for name, line in late_imports(path):
            reason = "#" in lines[line - 1] or lines[line - 2].strip().startswith("#")
            bare[name] = bare.get(name, True) and not reason
        offenders += [f"{place(path)}: {name}" for name, without in bare.items() if without]
    assert offenders == []


def test_what_one_kind_of_database_understands_stands_in_its_room():
    offenders = {}
    for path in sources():
        if not set(path.parts) & set(BACKENDS_ROOMS):
            drivers = {name for name in imports(path) for driver in DRIVERS if f"{name}.".startswith(f"{driver}.")}
            offenders[place(path)] = drivers | {word for word in DIALECT if word in path.read_text()}
    assert {path: used for path, used in offenders.items() if used} == {}


def test_every_package_has_its_tests():
    """tests/ mirrors the packages of kdx/, and its modules that are in none; a package may be tested by one file."""
    bare = []
    for path in sources():
        relative = path.relative_to(ROOT / "kdx")
        # The others are a line or two, used by every test of a run.
        if path.stem in ("__init__", "__main__", "version", "run_options"):
            continue
        parents = [*reversed(relative.parents)]
        together = [ROOT / "tests" / parent.parent / f"test_{parent.name}.py" for parent in parents[1:]]
        own = f"test_{path.stem}.py" if len(relative.parts) == 1 else "test_*.py"
        if not any((ROOT / "tests" / relative.parent).glob(own)) and not any(test.exists() for test in together):
            bare.append(place(path))
    assert not bare, f"no tests for {', '.join(bare)}"


COMMANDS = (
    "--help",
    "--version",
    *(f"{verb} --help" for verb in Kdx.verbs),
    "data prepare --help",
    "db backup --help",
    "db import --help",
)


@pytest.mark.parametrize("commands", [COMMANDS[:2], COMMANDS[2:]], ids=["kdx", "its commands"])
def test_help_loads_nothing_heavy(commands):
    """The list of commands loads none of them; the help of a command loads what its options name."""
    script = (
        "import sys\n"
        f"for command in {commands!r}:\n"
        "    sys.argv = ['kdx', *command.split()]\n"
        "    from kdx.cli.app import main\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, command\n"
        f"    heavy = set({NOT_FOR_HELP!r}.split()) & set(sys.modules)\n"
        "    assert not heavy, (command, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") == sum("--help" in command for command in commands)


def test_only_training_and_checking_attention_load_torch(tmp_path):
    """Checked with imports of torch forbidden, in a fresh process."""
    example = f"--db {ROOT / 'runs.db.example'}"
    commands = {"plan quickstart": 0, "report": 3, "query --schema": 0, "schema": 0, "explain": 0, "explain rbf": 0}
    for format in ("html", "latex", "csv"):
        commands[f"report --format {format} {example}"] = 0
    for command in (
        "doctor",
        "gc",
        "db check",
        "query VALUES(1)",
        "status",
        "show",
        "show 1",
        "diff 1 2",
        f"export --to {tmp_path}/results",
    ):
        commands |= {command: 3, f"{command} {example}": 0}
    script = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['pytorch_lightning'] = None\n"
        "from kdx.cli.app import main\n"
        f"for command, code in {commands}.items():\n"
        "    sys.argv[1:] = command.split()\n"
        "    try: main()\n"
        "    except SystemExit as end: assert (end.code or 0) == code, command\n"
        "    else: assert not code, command\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "KDX_DB": str(tmp_path / "runs.db")}
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "needless"),
    [
        ("status", "numpy yaml alembic kdx.grid.spec kdx.report.table kdx.sweep.decide"),
        ("status tsai2019/table1-mini", "numpy yaml alembic kdx.grid.spec kdx.report.table kdx.sweep.decide"),
        ("show 1", "numpy alembic kdx.report.table kdx.sweep.decide kdx.tune"),
        ("report", "kdx.sweep.decide kdx.tune kdx.data sqlalchemy.dialects.postgresql"),
        ("plan quickstart", "kdx.cli.running kdx.sweep.supervisor rich.progress scipy sqlalchemy.dialects.postgresql"),
        ("explain rbf", "numpy sqlalchemy"),
        ("query VALUES(1)", "numpy yaml alembic kdx.grid.spec kdx.grid.load"),
    ],
)
def test_a_command_that_looks_loads_what_it_needs(command, needless):
    """Each of these takes as long to import as the command may take."""
    script = (
        f"import sys; sys.argv = ['kdx', *{command.split()!r}]\n"
        "from kdx.cli.app import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print('loaded:', *sorted(set({needless!r}.split()) & set(sys.modules)), file=sys.stderr)"
    )
    environment = os.environ | {"KDX_DB": str(ROOT / "runs.db.example")}
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.splitlines()[-1].strip() == "loaded:"
