"""The keys of a grid are known without what reads a grid."""

import subprocess
import sys

import pytest

from kdx.grid.grid_keys import GRID, SUB_GRID
from kdx.grid.settings import settings


def test_they_are_told_without_loading_what_reads_them():
    script = (
        "import sys; from kdx.grid.grid_keys import GRID\n"
        "print(len(GRID), *sorted({'yaml', 'pydantic', 'kdx.grid.dimensions'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(GRID)}\n"


@pytest.mark.parametrize("key", GRID)
def test_each_has_a_sentence_and_no_cell_has_it(key):
    assert GRID[key][0].isupper() and GRID[key].endswith(".")
    assert key not in settings()


def test_a_sub_grid_has_none_that_a_grid_has_not():
    assert set(SUB_GRID) < set(GRID)
