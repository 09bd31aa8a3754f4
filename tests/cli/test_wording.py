"""Counts, sizes, runs and processes read as somebody would write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.cli.wording import count_of, numbers_of, process_in_words, process_of, run_name, size
from kdx.grid.plan import PlannedCell, PlannedRun
from kdx.grid.spec import CellSpec
from kdx.sweep.lease_holder import lease_holder

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})


def test_one_is_singular_and_thousands_have_commas():
    assert [count_of(number, "run") for number in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]
    assert [numbers_of("run", ids, 2) for ids in ([7], [7, 8], [7, 8, 9])] == ["run 7", "runs 7, 8", "runs 7, 8, …"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (16_944, "16.9 kB"), (10**16, "10000.0 TB")],
)
def test_bytes_have_the_unit_that_suits_them(count, text):
    assert size(count) == text


def run(labels: dict[str, str]) -> PlannedRun:
    return PlannedRun(PlannedCell("0123456789abcdef", 0, labels, SPEC), 7)


def test_a_run_is_named_by_its_cell_its_choices_or_its_task_and_its_seed():
    assert run_name(run({"approach": "Eq. 9", "kernel": "rbf"})) == "01234567 Eq. 9 · rbf · seed 7"
    assert run_name(run({})) == "01234567 translation · seed 7"


@given(st.text(min_size=1))
def test_whatever_a_grid_words_it_is_one_line(label):
    assert len(run_name(run({"axis": label})).splitlines()) == 1


def test_a_lease_holder_is_a_process_of_a_machine():
    own = lease_holder()
    machine, *_, process, _, _ = own.split("/")
    assert process_of(own) == (machine, int(process))
    assert process_in_words(own) == f"process {process} here"
    elsewhere = own.replace(machine, "0123456789abcdef")
    assert process_in_words(elsewhere) == f"process {process} on machine 01234567"
    for owner in (None, "", "me", "a/b/c", "a/b/c/\u0661/e/f"):
        assert process_of(owner) is process_in_words(owner) is None
