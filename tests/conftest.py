"""What every test may use.

A test of a fault takes `figure` and puts what it measured into one report; `pytest -m fault` runs these alone. One that
draws its faults at random takes `series`: it draws from SEED, which it prints; the same SEED draws the same again.
"""

import json
import os
import random
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch is imported. Tests run beside each other, and several threads each would wait for one another: what is as
# small as a test takes three times as long. A run says itself how many it has.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Makes the small grids importable; last, so that it hides nothing.
sys.path.append(str(Path(__file__).parent))

from browser import Browser, chromium
from postgresql_server import PostgresqlServer, start_server

# A busy machine is no fault.
settings.register_profile("kdx", deadline=None)
settings.load_profile("kdx")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora and golden vectors beside the checkout (KDX_SHARED); absent, the test is skipped.

    In CI the folder must be there, so its absence fails.
    """
    folder = Path(os.environ.get("KDX_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        reason = f"no corpora and golden vectors at {folder}; set KDX_SHARED"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(autouse=True)
def no_password_of_another_test(monkeypatch) -> None:
    """A command that is given the password of a database puts it into the environment of its process."""
    monkeypatch.delenv("PGPASSWORD", raising=False)


@pytest.fixture
def data_home(tmp_path_factory, monkeypatch) -> Path:
    """A folder for prepared and cached corpora, shared by the tests of one process."""
    home = tmp_path_factory.getbasetemp() / "data-home"
    monkeypatch.setenv("KDX_DATA", str(home))
    return home


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, and fails in CI."""
    program = chromium()
    with Browser(program, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A server of PostgreSQL, started for this session; without one the test is skipped, and in CI it fails."""
    # Another user has to reach it, and a socket's path has to be short.
    home = Path(tempfile.mkdtemp(prefix="kdx-pg-"))
    home.chmod(0o755)
    try:
        server = start_server(home)
        yield server
        server.stop()
    finally:
        shutil.rmtree(home)


@pytest.fixture
def reword():
    """Changes every cell of a database as a newer kdx would have written it: under the id of the result."""
    from kdx.grid.identity import id_of

    def reword(connection, change) -> None:
        execute = getattr(connection, "exec_driver_sql", None) or connection.execute
        execute("PRAGMA defer_foreign_keys = ON")
        for cell_id, text in execute("SELECT id, spec FROM cell").fetchall():
            spec = json.loads(text)
            change(spec)
            new_id = id_of(spec)
            execute("UPDATE cell SET id = ?, spec = ? WHERE id = ?", (new_id, json.dumps(spec), cell_id))
            for table in ("sweep_cell", "sweep_run", "plan_cell", "run"):
                execute(f"UPDATE {table} SET cell_id = ? WHERE cell_id = ?", (new_id, cell_id))

    return reword


FIGURES = "figure"
FAULTS = Path(__file__).parent / "faults"
LONGEST = {"test_golden.py", "test_docs.py"}
# Fixtures of faults, and of programs that a newcomer may not have.
NOT_FOR_A_NEWCOMER = {"figure", "series", "unbroken", "postgresql_server", "cluster", "browser"}


@pytest.fixture(scope="session")
def seed() -> int:
    """Of every series of this session."""
    return int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture
def series(seed, request, record_property) -> random.Random:
    """Random numbers of one series, which depend on SEED and on the test alone."""
    record_property(FIGURES, f"SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def figure(record_property):
    """Puts a line into the report of faults."""
    return lambda text: record_property(FIGURES, text)


def pytest_configure() -> None:
    # A shell that starts the tests in its background, or nohup, has them ignore these, and so every process of theirs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if "figure" in item.fixturenames:
            item.add_marker(pytest.mark.fault)
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if NOT_FOR_A_NEWCOMER.intersection(item.fixturenames) or "postgresql" in params or FAULTS in item.path.parents:
            item.add_marker(pytest.mark.slow)
    # Begin with the long files, else one of the workers ends alone with them.
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_terminal_summary(terminalreporter) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind)]
    told = [(report.nodeid, [text for name, text in report.user_properties if name == FIGURES]) for report in reports]
    if any(figures for _, figures in told):
        terminalreporter.section("faults")
    for place, figures in told:
        if figures:
            terminalreporter.write_line(f"{place.rpartition('::')[2]}: {'; '.join(figures)}")


CAUCHY = '''"""Kernels of one's own."""

from helpers import squared_distance
from torch import Tensor

from kdx.attention.interfaces import KernelFunction
from kdx.words import option


class Cauchy(KernelFunction):
    """A heavy tail."""

    formula = "k(q, k) = 1 / (1 + |q - k|² / b²)"
    gives = "weight"
    bandwidth: float = option(1.0, above=0)
    """b, in units of a feature."""

    def weight(self, query: Tensor, key: Tensor) -> Tensor:
        return 1 / (1 + squared_distance(query, key) / self.bandwidth**2)
'''
HELPERS = """def squared_distance(query, key):
    return (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)
"""
OWN_GRID = """
task: answer
data: {corpus: copy, length: 4}
model: {width: 8, heads: 2, decoder_layers: 1, inner: 8}
training: {steps: 2, batch_tokens: 32, warmup: 1}
kernel: my_kernels.py:Cauchy
"""


@pytest.fixture
def components():
    """Takes the words from outside out again, which belong to a process and not to a test."""
    yield
    forget_components()


def forget_components() -> None:
    """Bring this process to where it knows no custom component, as a new one does."""
    from kdx.components import registry
    from kdx.words.family import _OVER_WORDS

    registry._VERSIONS.clear()
    for family in registry.FAMILY_OF.values():
        for word in list(family.outside):
            del family.outside[word], family._known[word]
    for forget in _OVER_WORDS:
        forget()


@pytest.fixture(scope="session")
def write_own_kernel() -> Callable[[Path], Path]:
    """Makes a folder with a kernel of one's own, the module that it imports, and a grid that names it."""

    def write(folder: Path) -> Path:
        folder.mkdir()
        for name, text in {"my_kernels.py": CAUCHY, "helpers.py": HELPERS, "grid.yaml": OWN_GRID}.items():
            (folder / name).write_text(text)
        return folder

    return write


@pytest.fixture
def own_kernel(tmp_path, components, write_own_kernel) -> Path:
    """Such a folder."""
    return write_own_kernel(tmp_path / "own")


COINS = '''"""Sequences of coins."""

from dataclasses import dataclass
from random import Random

from kdx.data.examples import Example, ExamplesOneByOne, answered
from kdx.words import option


@dataclass(frozen=True, kw_only=True)
class Coins(ExamplesOneByOne):
    """Which of two coins comes more often."""

    task: str = "majority"
    slices = ("throws",)
    throws: int = option(9, minimum=1)
    """Coins in a row, at most."""

    @property
    def tokens(self) -> int:
        return 2 * self.throws

    @property
    def classes(self) -> int:
        return 3

    def draw(self, random: Random) -> Example:
        coins = [random.choice((1, 2)) for _ in range(2 * random.randrange(self.throws) + 1)]
        return answered(coins, [max((1, 2), key=coins.count)], {"throws": len(coins)}, self.tokens)
'''
MAJORITY = '''"""Votes of a sequence."""

from torch import Tensor

from kdx.words import option
from kdx.data.batching import ExampleBatch
from kdx.training.examples.answer import AnswerModule
from kdx.vocabulary import Split
from tails.shares import share


class Majority(AnswerModule):
    """The commonest token of a sequence."""

    metrics = {
        "accuracy": ("max", "percent", "target"),
        "loss": ("min", "nats", "target"),
        "exact_match": ("max", "percent", "example"),
        "confidence": ("max", "percent", "example"),
    }
    sharpness: float = option(1.0, above=0)
    """What logits are multiplied by before the confidence is taken."""

    def _start(self) -> None:
        super()._start()
        self._sure = 0.0

    def measure(self, batch: ExampleBatch, logits: Tensor, targets: Tensor) -> None:
        super().measure(batch, logits, targets)
        self._sure += share(self.sharpness * logits, targets)

    def summarise(self, split: Split) -> dict[str, float]:
        return {**super().summarise(split), "confidence": 100 * self._sure / self._targets}

    def definitions(self, split: Split) -> dict[str, str]:
        return {**super().definitions(split), "confidence": "mean probability of the likeliest token, in percent"}
'''
SHARES = """def share(logits, targets):
    return float(logits.softmax(-1).max(-1).values[targets != -100].sum())
"""
GRID_OF_A_TASK = """task: majority
data: {corpus: coins, throws: 5}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 16}
training: {steps: 8, batch_tokens: 512, warmup: 2, learning_rate: 0.001}
sharpness: 2
tables:
  - {name: sure, rows: [kernel, evaluation], metric: confidence}
evaluations: {again: {split: valid}}
"""


@pytest.fixture
def own_task(tmp_path, components, monkeypatch) -> Path:
    """A folder with a grid, beside the folder `site` of an installed package with its task and its corpus."""
    site, about, folder = (tmp_path / name for name in ("site/tails", "site/tails-1.2.dist-info", "own"))
    for one in (site, about, folder):
        one.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tails\nVersion: 1.2\n")
    entry_points = "[kdx.tasks]\nmajority = tails.tasks:Majority\n[kdx.corpora]\ncoins = tails.coins:Coins\n"
    (about / "entry_points.txt").write_text(entry_points)
    for name, text in {"__init__": "", "coins": COINS, "tasks": MAJORITY, "shares": SHARES}.items():
        (site / f"{name}.py").write_text(text)
    (folder / "grid.yaml").write_text(GRID_OF_A_TASK)
    monkeypatch.syspath_prepend(site.parent)
    monkeypatch.setenv("PYTHONPATH", str(site.parent))
    return folder


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Programs that answer as they are told: `played(sbatch="echo 7")`; each keeps its arguments and its input."""
    folder = tmp_path / "played"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def play(**programs: str) -> Path:
        for name, text in programs.items():
            file = folder / name
            file.write_text(f'#!/bin/bash\necho "$@" >> {folder}/{name}.words\n{text}\n')
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return folder

    return play
