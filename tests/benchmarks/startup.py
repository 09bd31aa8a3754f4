"""Start-up: help, looking at a small database, and the first step of training, each against the least that it can be.

Help and completion are compared with a Typer app of two commands; status, plan and report with the imports of their
libraries; the first optimiser step of a sweep with that of a script that trains a small model by Lightning. Verifying
has a limit of its own. The compared commands take turns. Ratios are of processor time, since a busy machine disturbs it
less, except to the first step, to which several processes contribute: that is of wall time.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from tests.benchmarks.orchestration import GRID

ROUNDS, FIRST_STEPS = 15, 5
LIMITS = {"help": 1.2, "look": 2.0, "first_step": 0.8}
VERIFY_LIMIT = 20.0  # seconds of processor time
VERIFY = ["verify"]
EXAMPLE = Path(__file__).parents[2] / "runs.db.example"

TWO_COMMANDS = '''
import typer

app = typer.Typer()


@app.command()
def one(name: str) -> None:
    """The first."""


@app.command()
def two(count: int = 1) -> None:
    """The second."""


app()
'''

PLAIN_LOOP = """
import pytorch_lightning as lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 2, 32, batch_first=True)
        self.layers = nn.Sequential(nn.Embedding(100, 32), nn.TransformerEncoder(layer, 1), nn.Linear(32, 100))

    def training_step(self, batch, index):
        tokens, = batch
        return nn.functional.cross_entropy(self.layers(tokens).flatten(0, 1), tokens.flatten())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


batches = DataLoader(TensorDataset(torch.randint(100, (64, 64))), batch_size=8)
lightning.Trainer(
    max_steps=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
).fit(Model(), batches)
"""

# Python imports this module at its start. It writes the time of the first optimiser step of a training to a file;
# Lightning gives each of its steps a closure, and the canary of kdx, which comes before, has none.
WATCH = """
import importlib.util, os, sys, time


def write(optimizer, arguments, options):
    if "closure" not in options:
        return
    try:
        with open(os.environ["FIRST_STEP"], "x") as file:
            file.write(str(time.monotonic()))
    except FileExistsError:
        pass


class Watch:
    def find_spec(self, name, path=None, target=None):
        if name != "torch.optim.optimizer":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (run(module), module.register_optimizer_step_post_hook(write))
        return spec


sys.meta_path.insert(0, Watch())
"""


def measure() -> dict[str, object]:
    """Median seconds of each command, and the ratios to what it is compared with."""
    kdx = str(Path(sys.executable).parent / "kdx")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "two.py").write_text(TWO_COMMANDS)
        (folder / "loop.py").write_text(PLAIN_LOOP)
        (folder / "grid.yaml").write_text(GRID)
        (folder / "sitecustomize.py").write_text(WATCH)
        shutil.copy(EXAMPLE, folder / "runs.db")
        imports = [sys.executable, "-c", "import typer, rich, sqlalchemy, pydantic"]
        return {
            "help": _compared(
                "help",
                folder,
                {
                    "typer_two_commands": [sys.executable, "two.py", "--help"],
                    "kdx_help": [kdx, "--help"],
                    "kdx_report_help": [kdx, "report", "--help"],
                    "kdx_sweep_help": [kdx, "sweep", "--help"],
                    "kdx_db_import_help": [kdx, "db", "import", "--help"],
                    "complete_verb": ["env", *_completing("sta"), kdx],
                    "complete_option": ["env", *_completing("status", "--f"), kdx],
                    "complete_sweep": ["env", *_completing("status", "quick"), kdx],
                },
            ),
            "look": _compared(
                "look",
                folder,
                {
                    "imports": imports,
                    "status": [kdx, "status"],
                    "plan": [kdx, "plan", "quickstart"],
                    "report": [kdx, "report"],
                },
            ),
            "first_step": _first_steps(folder, kdx),
            "verify": _verified(folder, kdx),
        }


def _completing(*words: str) -> list[str]:
    """Return the variables by which bash asks to complete the last of these words."""
    return ["_KDX_COMPLETE=complete_bash", "COMP_WORDS=" + "\n".join(("kdx", *words)), f"COMP_CWORD={len(words)}"]


def _environment(**more: str) -> dict[str, str]:
    # Compiled modules are kept, as they are where kdx is installed.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KDX_DB", "PYTHONDONTWRITE"))}
    return kept | more


def _processor_seconds(command: Sequence[str], folder: Path) -> float:
    """Run a command and return the processor time of its process and of those that it waited for."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=null, stderr=null)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def _compared(part: str, folder: Path, commands: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Measure commands in turn, the first of which the others are compared with."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            seconds[name].append(_processor_seconds(command, folder))
    return _result(part, seconds)


def _result(part: str, seconds: Mapping[str, Sequence[float]]) -> dict[str, object]:
    base = next(iter(seconds))
    medians = {name: median(values) for name, values in seconds.items()}
    ratios = {name: round(value / medians[base], 2) for name, value in medians.items() if name != base}
    return {
        "seconds": {name: round(value, 3) for name, value in medians.items()},
        "least_seconds": {name: round(min(values), 3) for name, values in seconds.items()},
        "ratio": ratios,
        "limit": LIMITS[part],
        "within": all(ratio <= LIMITS[part] for ratio in ratios.values()),
    }


def _first_steps(folder: Path, kdx: str) -> dict[str, object]:
    """Measure the wall time from the command to the end of the first optimiser step."""
    file = folder / "first-step"

    def seconds(command: Sequence[str]) -> float:
        file.unlink(missing_ok=True)
        environment = _environment(PYTHONPATH=str(folder), FIRST_STEP=str(file))
        start = time.monotonic()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        return float(file.read_text()) - start

    def sweep(number: int) -> float:
        return seconds([kdx, "sweep", "grid.yaml", "--workers", "1", "--set", "seeds=1", "--db", f"new-{number}.db"])

    sweep(-1)  # prepares the corpus
    measured: dict[str, list[float]] = {"plain_loop": [], "kdx_sweep": []}
    for number in range(FIRST_STEPS):
        measured["plain_loop"].append(seconds([sys.executable, "loop.py"]))
        measured["kdx_sweep"].append(sweep(number))
    return _result("first_step", measured)


def _verified(folder: Path, kdx: str) -> dict[str, object]:
    taken = _processor_seconds([kdx, *VERIFY], folder)
    return {"seconds": round(taken, 1), "limit": VERIFY_LIMIT, "within": taken <= VERIFY_LIMIT}
