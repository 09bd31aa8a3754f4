"""Engines whose transactions begin as they are asked to."""

import pytest
from sqlalchemy import select

from kdx.store.postgresql.engines import driver_of
from kdx.store.schema import sweep


def settings(connection) -> dict[str, str]:
    names = "transaction_isolation transaction_read_only synchronous_commit idle_in_transaction_session_timeout"
    return {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names.split()}


def test_each_transaction_has_a_connection_of_its_own(database):
    with database.read() as one:
        first = driver_of(one).info.backend_pid
    with database.read() as other:
        assert driver_of(other).info.backend_pid != first


def test_a_reader_sees_one_state_and_cannot_write(database):
    with database.read() as connection:
        found = settings(connection)
        assert (found["transaction_isolation"], found["transaction_read_only"]) == ("repeatable read", "on")


@pytest.mark.parametrize("alone", [False, True])
def test_a_commit_survives_a_power_cut_whatever_the_server_is_set_to(database, postgresql_server, address, alone):
    name = address.rpartition("/")[2]
    postgresql_server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with database.write(alone=alone) as connection:
        found = settings(connection)
        assert found["synchronous_commit"] == "on" and found["transaction_read_only"] == "off"
        # A process that stopped in the middle holds up others no longer than this.
        assert found["idle_in_transaction_session_timeout"] == "10min"
        assert connection.scalar(select(sweep.c.id)) is None
