"""What a word of a command line names."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.store.database import open_database
from kdx.store.find import CellFound, RunFound, SweepFound, find, run_number, sweep_named, the_run

A, B, C = "abcd0000" + "0" * 24, "abcd1111" + "0" * 24, "1" * 32


@pytest.fixture
def database(tmp_path):
    """Two sweeps, the second planned last; two cells that begin alike; one run, number 7."""
    with open_database(tmp_path / "runs.db", write=True, create=True) as opened:
        with opened.write() as connection:
            execute = connection.exec_driver_sql
            for number, name in enumerate(("first", "beef"), 1):
                execute(
                    "INSERT INTO sweep (id, name, created, updated, grid) VALUES (?, ?, 1, ?, '{}')",
                    (number, name, number),
                )
            for cell in (A, B, C):
                execute("INSERT INTO cell (id, spec) VALUES (?, '{}')", (cell,))
            execute(
                "INSERT INTO sweep_cell (sweep_id, cell_id, ordinal, labels, planned) VALUES (1, ?, 0, ?, 1)",
                (A, json.dumps({"kernel": "rbf"})),
            )
            for number, cell in ((7, A), (1111, B)):
                execute(
                    "INSERT INTO run (id, cell_id, seed, generation, state, attempt, progress_step, stalls) "
                    "VALUES (?, ?, 0, 0, 'pending', 0, 0, 0)",
                    (number, cell),
                )
        yield opened


@pytest.mark.parametrize(
    ("word", "found"),
    [
        (None, SweepFound(2, "beef")),
        ("first", SweepFound(1, "first")),
        ("7", RunFound(7)),
        ("abcd0", CellFound(A)),
        (B, CellFound(B)),
        ("beef", SweepFound(2, "beef")),  # before a cell that begins so
        ("1111", RunFound(1111)),  # likewise
        ("11111", CellFound(C)),  # there is no run of this number
    ],
)
def test_a_word_names_a_run_a_sweep_or_a_cell(database, word, found):
    assert find(database, word) == found


def refused(database, word) -> KdxError:
    with pytest.raises(KdxError) as error:
        find(database, word)
    return error.value


def test_several_cells_are_listed_with_their_choices(database):
    error = refused(database, "abcd")
    assert error.problem == "several cells begin with `abcd`"
    assert error.allowed == f"{A} (rbf), {B}" and error.hint == "give more digits"


def test_what_is_not_there_is_refused_with_the_nearest(database):
    assert refused(database, "frist").hint == "did you mean `first`?"
    assert refused(database, "8").problem == "there is no run 8"
    assert refused(database, "abc").hint == "a cell is named by at least 4 digits of its id"
    assert refused(database, "ABCD0").problem == "there is no run, sweep or cell `ABCD0`"
    assert "first" in (refused(database, "").allowed or "")


def test_an_empty_database_says_so(tmp_path):
    with open_database(tmp_path / "empty.db", write=True, create=True) as opened:
        assert refused(opened, None).problem == "no sweep is recorded here yet"
        assert "none is recorded" in (refused(opened, "x").allowed or "")


def test_a_run_and_a_sweep_by_themselves(database):
    assert the_run(database, "7").id == 7
    assert sweep_named(database, "first") == 1
    for word in ("x", "8", "-7", "٧", "9" * 30):
        with pytest.raises(KdxError):
            the_run(database, word)
    with pytest.raises(KdxError) as error:
        sweep_named(database, "frist")
    assert error.value.hint == "did you mean `first`?"


@given(st.text())
def test_a_number_of_a_run_is_one_that_a_database_can_hold(word):
    number = run_number(word)
    assert number is None or (0 <= number < 2**63 and int(word) == number)
