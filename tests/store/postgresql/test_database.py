"""Engines whose transactions begin as they are asked to."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select
from waiting import wait_until

from kdx.store.backend import driver_of
from kdx.store.refusals import TransactionLostError
from kdx.store.schema import sweep


def settings(connection) -> dict[str, str]:
    names = "transaction_isolation transaction_read_only synchronous_commit idle_in_transaction_session_timeout"
    return {name: connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names.split()}


def test_each_transaction_has_a_connection_of_its_own(database):
    with database.read() as one:
        first = driver_of(one).info.backend_pid
    with database.read() as other:
        assert driver_of(other).info.backend_pid != first


def session(database) -> int:
    """The server's process of one transaction."""
    with database.write(alone=False) as connection:
        return driver_of(connection).info.backend_pid


def sessions(connected) -> set[int]:
    """All that are open, but for the one that looks."""
    with connected() as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in found.fetchall()}


def gone(connected, pid: int) -> bool:
    """Whether a session ends, which it does a moment after its client."""
    wait_until(lambda: pid not in sessions(connected))
    return True


def test_transactions_that_follow_each_other_take_turns_on_one_connection_and_then_it_is_closed(database, connected):
    with database.connected():
        with database.read() as connection:
            first = driver_of(connection).info.backend_pid
            assert settings(connection)["transaction_read_only"] == "on"
        with database.write() as connection:
            assert driver_of(connection).info.backend_pid == first
            assert settings(connection)["transaction_read_only"] == "off"
        assert session(database) == first
        wait_until(lambda: sessions(connected) == {first})  # those that came before end a moment after their client
    assert gone(connected, first)
    assert session(database) != first


def test_a_kept_connection_is_closed_before_what_takes_long(database, connected):
    with database.connected():
        first = session(database)
        database.disconnect()
        assert gone(connected, first)
        assert session(database) != first


def test_a_kept_connection_that_is_lost_is_made_again(database, connected, caplog):
    with database.connected():
        first = session(database)
        with connected() as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [first])
        with pytest.raises(TransactionLostError):
            session(database)
        assert session(database) == session(database) != first
        second = session(database)
        with connected() as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [second])
        assert database.persist(lambda: session(database)) not in (first, second)


def test_a_transaction_within_another_has_a_connection_of_its_own(database):
    with database.connected():
        with database.read() as connection:
            outer = driver_of(connection).info.backend_pid
            assert session(database) != outer
        assert session(database)


def test_what_one_thread_keeps_is_not_kept_for_another(database, connected):
    kept, done = threading.Event(), threading.Event()

    def keep() -> int:
        with database.connected():
            found = session(database)
            kept.set()
            done.wait(300)
            return found

    with ThreadPoolExecutor(1) as pool:
        keeping = pool.submit(keep)
        kept.wait(300)
        other = session(database)
        assert gone(connected, other), "this thread keeps none"
        done.set()
        assert gone(connected, keeping.result())


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
