"""A view has columns of one type each, whatever a cell holds."""

import json

from sqlalchemy import insert, update

from kdx.store.database import Database
from kdx.store.recording import register
from kdx.store.schema import bits_of, cell, metric


def test_a_word_in_the_place_of_a_number_is_null(database: Database, plan_of):
    register(database, plan_of(1, 1), {"tables": []})
    with database.write() as connection:
        (planned,) = connection.execute(cell.select()).all()
        spec = json.loads(planned.spec) | {"memory": "endless"}
        connection.execute(update(cell).values(spec=json.dumps(spec)))
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT memory, kernel FROM cells").all() == [(None, "exponential")]


def test_a_score_that_is_not_a_number_is_null(database: Database, plan_of):
    register(database, plan_of(1, 1), {"tables": []})
    with database.write() as connection:
        number = {"run_id": 1, "name": "valid/loss", "step": 1, "writes": 1, "differs": 0}
        connection.execute(insert(metric).values(value=float("nan"), bits=bits_of(float("nan")), **number))
    with database.read() as connection:
        assert connection.exec_driver_sql("SELECT value FROM curves").all() == [(None,)]
