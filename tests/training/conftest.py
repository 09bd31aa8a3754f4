"""Makes the small runs importable, and trains each that many tests look at once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import runs


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """Where the corpora of these tests are cached."""
    return tmp_path_factory.getbasetemp() / "data-home"


@pytest.fixture(scope="session")
def unbroken(home, tmp_path_factory):
    """A run from beginning to end, by task, batches a step and weights averaged.

    It left a checkpoint before every step but the first.
    """
    done: dict[tuple[str, int, int], runs.Run] = {}

    def run(task: str, accumulate: int = 1, average: int = 0) -> runs.Run:
        if (task, accumulate, average) not in done:
            folder = tmp_path_factory.mktemp("unbroken")
            spec = runs.cell(task, accumulate=accumulate, average=average)
            with pytest.MonkeyPatch.context() as patch:
                runs.save_every_step(patch, keep_all=True)
                done[task, accumulate, average] = runs.run(spec, folder, home)
        return done[task, accumulate, average]

    return run


@pytest.fixture
def train(home, tmp_path):
    """Trains in a folder of the test's own."""

    def run(spec, seed: int = 0, **arguments) -> runs.Run:
        return runs.run(spec, tmp_path / "run", home, seed, **arguments)

    return run
