"""A run has a name on the terminal, on one line."""

from hypothesis import given
from hypothesis import strategies as st

from kdx.cli.wording import run_name
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
