"""Makes what these tests share importable, and a sweep to which nothing happens."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """The rows of GRID, swept when nothing happens."""
    from processes import GRID, kdx, rows

    folder = tmp_path_factory.mktemp("unbroken")
    (folder / "grid.yaml").write_text(GRID)
    assert kdx(folder, "sweep", "grid.yaml", "--workers", "2").wait(600) == 0
    return rows(folder)
