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
    """A run from beginning to end, by task and batches a step; it left a checkpoint before every step but the first."""
    done: dict[tuple[str, int], runs.Run] = {}

    def run(task: str, accumulate: int = 1) -> runs.Run:
        if (task, accumulate) not in done:
            folder = tmp_path_factory.mktemp("unbroken")
            with pytest.MonkeyPatch.context() as patch:
                runs.save_every_step(patch, keep_all=True)
                done[task, accumulate] = runs.run(runs.cell(task, accumulate=accumulate), folder, home)
        return done[task, accumulate]

    return run


@pytest.fixture
def train(home, tmp_path):
    """Trains in a folder of the test's own."""

    def run(spec, seed: int = 0, **arguments) -> runs.Run:
        return runs.run(spec, tmp_path / "run", home, seed, **arguments)

    return run
