"""A run has a name on the terminal, on one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.cli.wording import run_name, size
from kdx.grid.plan import PlannedCell, PlannedRun
from kdx.grid.spec import CellSpec

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})


def run(labels: dict[str, str]) -> PlannedRun:
    return PlannedRun(PlannedCell("0123456789abcdef", 0, labels, SPEC), 7)


def test_a_run_is_called_by_its_cell_its_choices_and_its_seed():
    assert run_name(run({"approach": "Eq. 9", "kernel": "rbf"})) == "01234567 Eq. 9 · rbf · seed 7"


def test_a_cell_without_choices_is_called_by_its_task():
    assert run_name(run({})) == "01234567 translation · seed 7"


@given(st.text(min_size=1))
def test_whatever_a_grid_words_it_is_one_line(label):
    assert len(run_name(run({"axis": label})).splitlines()) == 1


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (16_944, "16.9 kB"),
        (2 * 10**9, "2.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_bytes_are_told_in_the_unit_that_suits_them(count, text):
    assert size(count) == text
