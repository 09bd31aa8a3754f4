import pytest
from sqlalchemy import insert, update

from kdx.grid.evaluations import AskedEvaluation, EvaluationSettings, ResolvedEvaluation, resolve_evaluation
from kdx.store.check import check
from kdx.store.claims import claim
from kdx.store.database import Database, open_database
from kdx.store.recording import RunWriter
from kdx.store.schema import (
    bits_of,
    environment,
    evaluation,
    evaluation_document,
    evaluation_metric,
)
from kdx.store.schema import test_document as run_document


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
    assert (checked.differing, checked.mode) == (0, None)


def test_numbers_that_a_replay_changed_are_counted(database: Database, hand: RunWriter):
    hand.record([("train/loss", 1, 1.5)], 1)
    assert check(database).differing == 1


def test_a_lost_table_and_a_lost_column_are_found(backend, address: str, hand: RunWriter):
    backend.execute(address, "DROP TABLE output", "ALTER TABLE environment RENAME COLUMN environment TO other")
    assert faults(address) == ("the table environment lacks environment", "the table output is missing")


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


def evaluated(database: Database, plan_of) -> ResolvedEvaluation:
    """An evaluation of run 1 with sums by document, as one is recorded."""
    spec = plan_of().cells[0].spec
    made = resolve_evaluation(spec, AskedEvaluation("wide", EvaluationSettings(beam=4)))
    row = {"id": 1, "run_id": 1, "settings_id": made.id, "settings": dict(made.settings), "made": 1.0}
    sums = {"targets": [3.0, 1.0], "nats": [2.5, 0.5], "right": [1.0, 0.0]}
    scores = [{"evaluation_id": 1, "name": "loss", "value": 0.75, "bits": bits_of(0.75)}]
    scores += [{"evaluation_id": 1, "name": "accuracy", "value": 25.0, "bits": bits_of(25.0)}]
    with database.write() as connection:
        connection.execute(insert(evaluation).values(row))
        connection.execute(insert(evaluation_metric), scores)
        connection.execute(insert(evaluation_document).values(evaluation_id=1, unit="block", sums=sums))
    return made


def test_settings_of_an_evaluation_that_were_edited_are_found(backend, database: Database, address, hand, plan_of):
    made = evaluated(database, plan_of)
    assert faults(address) == ()
    with database.write() as connection:
        connection.execute(update(evaluation).values(settings={**made.settings, "beam": 5}))
    assert faults(address) == ("the settings of evaluation 1 of run 1 are not what their id is the hash of",)
    with database.write() as connection:
        connection.execute(update(evaluation).values(settings={**made.settings, "depth": 5}))
    assert faults(address) == (), "another kdx may have more settings"
    backend.execute(address, "UPDATE cell SET spec = '{}'")
    assert len(faults(address)) == 2, "of the two cells"
    backend.execute(address, """UPDATE evaluation_document SET sums = '{"nats": [1]}'""")
    assert "evaluation_document.sums is " in faults(address)[0]


def test_sums_by_document_that_do_not_add_up_to_the_score_are_found(database: Database, address: str, hand, plan_of):
    evaluated(database, plan_of)
    hand.record([("test/loss", 1, 0.75)], 1)
    hand.documents("block", {"targets": [3.0, 1.0], "nats": [2.5, 0.5]})
    assert faults(address) == ()
    with database.write() as connection:
        connection.execute(update(run_document).values(sums={"targets": [3.0, 1.0], "nats": [2.5, 0.51]}))
        connection.execute(update(evaluation_document).values(sums={"targets": [3.0, 1.0], "right": [1.0, 1.0]}))
    assert faults(address) == (
        "the sums by document of run 1 do not add up to its test/loss",
        "the sums by document of evaluation 1 do not add up to its accuracy",
    )
