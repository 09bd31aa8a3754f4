import pytest

from kdx.errors import DatabaseError
from kdx.store.check import check, look_through
from kdx.store.database import Database, open_database
from kdx.store.reading import load_sweep
from kdx.store.recording import RunWriter


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


def test_a_number_that_was_edited_is_found(backend, address: str, hand: RunWriter):
    hand.record([("valid/loss", 1, float("nan")), ("train/loss", 1, float("-inf"))], 1)
    assert faults(address) == ()
    backend.execute(address, "UPDATE metric SET value = 7.0 WHERE name = 'train/loss'")
    assert faults(address) == ("1 rows of metric have a value that is not that of its bits",)


def test_a_cell_that_was_edited_is_found(backend, address: str, hand: RunWriter):
    backend.execute(address, "UPDATE cell SET spec = replace(spec, 'toy', 'joy') WHERE id = (SELECT min(id) FROM cell)")
    (fault,) = faults(address)
    assert fault.startswith("the cell ") and fault.endswith(" is not what its id is the hash of")


@pytest.mark.parametrize(
    ("table", "column", "text"),
    [
        ("sweep", "grid", '{"seeds": [-1]}'),
        ("sweep", "grid", '{"tables": [1]}'),
        ("sweep", "grid", '{"any": {"thing": [1000000000000000000000000000000]}}'),
        ("sweep_cell", "labels", '{"kernel": 1e30}'),
        ("run", "data_facts", '{"test/unknown_rate": "x"}'),
    ],
)
def test_json_that_kdx_never_writes_is_found_and_ends_a_reader_in_one_message(
    backend, address: str, hand: RunWriter, table: str, column: str, text: str
):
    backend.execute(address, f"UPDATE {table} SET {column} = '{text}'")
    assert faults(address)[-1].endswith(f" rows of {table} have a {column} that kdx never writes")
    with open_database(address, write=False) as database, pytest.raises(DatabaseError) as caught:
        load_sweep(database)
    assert (caught.value.place, caught.value.problem) == (
        address,
        f"its `{column}` is not as kdx writes it: {text[:60]}",
    )


def test_a_table_that_this_kdx_cannot_read_is_found(backend, address: str, hand: RunWriter):
    grid = '{"tables": [{"name": "t", "rows": ["task"], "folds": 3}]}'
    backend.execute(address, f"UPDATE sweep SET grid = '{grid}'")
    assert "this kdx cannot read its TableSpec: folds" in faults(address)[0]
