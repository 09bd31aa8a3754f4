"""Where runs were begun, and who could not go on with them."""

import pytest

from kdx.store import claims
from kdx.store.begun import begun
from kdx.store.database import Database
from kdx.store.recording import RunWriter


def attempt(database: Database, run_id: int, owner: str) -> RunWriter:
    return RunWriter(database, run_id, owner, claims.claim(database, run_id, owner, 60))


def computed(database: Database, run_id: int, owner: str, device: str, resumed: int = 0) -> None:
    writer = attempt(database, run_id, owner)
    writer.begin({"device": device}, "data", "code", resumed)
    writer.checkpoint(resumed + 5)
    writer.interrupt(resumed + 5)


def test_runs_under_one_environment_and_data_have_equal_conditions(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    computed(database, 2, "one", "A")
    computed(database, 3, "other", "B")
    found = begun(database, [1, 2, 3, 4])
    assert found.keys() == {1, 2, 3}
    assert found[1].conditions == found[2].conditions != found[3].conditions
    assert (found[1].owner, found[3].owner) == ("one", "other")
    assert found[1].waited >= 0 and found[1].refusals == {}


def test_who_refused_is_known_until_the_run_is_computed_again(database: Database, sweep_id: int):
    computed(database, 1, "one", "A")
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE attempt SET ended = ended - 1e6")
    for owner in ("two", "three"):
        attempt(database, 1, owner).interrupt(0, refused=f"device A → {owner}")
    found = begun(database, [1])[1]
    assert found.refusals == {"two": "device A → two", "three": "device A → three"}
    assert found.owner == "one" and found.waited > 999_999, "a refusal begins no new wait"
    computed(database, 1, "one", "A", resumed=5)
    found = begun(database, [1])[1]
    assert (found.refusals, found.waited < 999_999) == ({}, True)


def test_a_run_whose_process_died_waits_since_its_lease_lapsed(database: Database, sweep_id: int):
    attempt(database, 1, "one").begin({}, "data", "code")
    assert begun(database, [1])[1].waited == 0
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE run SET lease_until = lease_until - 1e6")
    assert begun(database, [1])[1].waited == pytest.approx(1e6, rel=0.01)


def test_a_run_that_was_never_computed_is_left_out(database: Database, sweep_id: int):
    attempt(database, 1, "one").interrupt(0)
    assert begun(database, [1, 2]) == {}
