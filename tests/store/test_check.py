import pytest
from sqlalchemy import update

from kdx.store.check import check, look_through
from kdx.store.claims import claim
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.schema import (
    environment,
)


@pytest.fixture
def hand(database: Database, sweep_id: int) -> RunWriter:
    """A run with a number and a text."""
    attempt = claim(database, 1, "me", 60)
    assert attempt is not None
    hand = RunWriter(database, 1, "me", attempt)
    hand.record([("train/loss", 1, 1.0)], 1)
    hand.outputs("test/translations", ["ein Hund", "eine Katze"])
    return hand


def faults(address: str) -> tuple[str, ...]:
    with open_database(address, write=False) as database:
        return check(database).faults


def test_of_a_sound_database_the_rows_are_counted(database: Database, hand: RunWriter):
    checked = check(database)
    assert checked.faults == ()
    assert (checked.rows["run"], checked.rows["metric"], checked.rows["output"]) == (4, 1, 1)
    assert checked.differing == 0


def test_numbers_that_a_replay_changed_are_counted(database: Database, hand: RunWriter):
    hand.record([("train/loss", 1, 1.5)], 1)
    assert check(database).differing == 1


def test_a_lost_table_is_found(backend, address: str, hand: RunWriter):
    backend.execute(address, "DROP TABLE output")
    assert any("output" in fault and "missing" in fault for fault in look_through(address).faults)


@pytest.mark.parametrize(
    "change",
    ["lines = substr(lines, 2)", "lines = substr(lines, 1, 5)", f"sha256 = '{'0' * 64}'"],
    ids=["other", "cut", "checksum"],
)
def test_a_text_that_was_changed_is_found(backend, address: str, hand: RunWriter, change: str):
    backend.execute(address, f"UPDATE output SET {change}")
    assert faults(address) == ("the texts test/translations of run 1 do not match their checksum",)


def test_a_cell_that_was_edited_is_found(backend, address: str, hand: RunWriter):
    backend.execute(address, "UPDATE cell SET spec = replace(spec, 'toy', 'joy') WHERE id = (SELECT min(id) FROM cell)")
    (fault,) = faults(address)
    assert fault.startswith("the cell ") and fault.endswith(" is not what its id is the hash of")


def test_an_environment_that_was_edited_is_found(database: Database, address: str, hand: RunWriter):
    hand.begin({"torch": "2.13", "threads": 1}, "data", "code", 0, None, {})
    assert faults(address) == ()
    with database.write() as connection:
        connection.execute(update(environment).values(environment={"torch": "9.9", "threads": 1}))
    (fault,) = faults(address)
    assert fault.startswith("the environment ") and fault.endswith(" is not what its id is the hash of")
