"""Transactions of SQLAlchemy begin and end as they are told to."""

import sqlite3

import pytest
from sqlalchemy import text

from kdx.store.sqlite.engines import driver_of, engines


def test_a_transaction_begins_by_its_kind_and_ends_by_one_commit(tmp_path):
    heard: list[str] = []

    def begin(driver: sqlite3.Connection, statement: str) -> None:
        heard.append(statement)
        driver.execute(statement)

    def commit(driver: sqlite3.Connection) -> None:
        heard.append("COMMIT")
        driver.execute("COMMIT")

    reading, writing = engines(lambda: sqlite3.connect(tmp_path / "a.db", isolation_level=None), begin, commit)
    with writing.begin() as connection:
        connection.execute(text("CREATE TABLE a (b)"))
        assert driver_of(connection).in_transaction
    with reading.begin() as connection:
        assert connection.execute(text("SELECT * FROM a")).all() == []
    with pytest.raises(RuntimeError), writing.begin() as connection:
        connection.execute(text("INSERT INTO a VALUES (1)"))
        raise RuntimeError
    assert heard == ["BEGIN IMMEDIATE", "COMMIT", "BEGIN", "COMMIT", "BEGIN IMMEDIATE"]
    with reading.begin() as connection:
        assert connection.execute(text("SELECT * FROM a")).all() == []
