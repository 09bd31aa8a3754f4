"""Makes what these tests share importable, and kdx something to type."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch) -> None:
    """The working folder is empty, and the environment names no database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KDX_DB", raising=False)


@pytest.fixture
def folder(tmp_path) -> Path:
    """The working folder."""
    return tmp_path


@pytest.fixture
def terminal(tmp_path, data_home):
    """Somebody in an empty folder."""
    from terminal import Terminal

    opened = Terminal(tmp_path, data_home)
    yield opened
    opened.close()


@pytest.fixture
def ran(monkeypatch):
    """The plans that commands would have run."""

    class Ran(list):
        def __init__(self) -> None:
            self.codes: dict[str, int] = {}
            """Sweep → the exit code of its plan, if it is not 0."""
            self.runners, self.trains = [], []

        def run(self, runner, plan, *, trains=True) -> int:
            self.append(plan)
            self.runners.append(runner)
            self.trains.append(trains)
            return self.codes.get(plan.name, 0)

    ran = Ran()
    monkeypatch.setattr("kdx.cli.running.Runner.run", lambda runner, plan, **how: ran.run(runner, plan, **how))
    return ran
