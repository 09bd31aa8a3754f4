"""Packets between a sweep and its server arrive whole, in order, and end with the other side."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, ServerError, StorageError
from kdx.sweep.messages import Order, receive, send, start, told, trouble

texts = st.text(max_size=200)
orders = st.builds(Order, st.integers(1), st.integers(1), texts, texts, texts, st.integers(0, 2**32), texts)


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@given(st.lists(orders, max_size=5))
def test_orders_arrive_as_they_were_sent(sent):
    here, there = pair()
    with here, there:
        for order in sent:
            send(here, start(order))
        received = [receive(there) for _ in sent]
    assert [Order(**message["order"]) for message in received] == sent
    assert all(message["do"] == "start" for message in received)


@pytest.mark.parametrize("kind", [KdxError, AccessError, DatabaseError, StorageError, ChangedError, ServerError])
def test_a_trouble_arrives_as_the_error_it_was(kind):
    here, there = pair()
    with here, there:
        sent = kind("the disk is full", place="/here", allowed="less", hint="free some space")
        send(here, trouble(3, sent))
        message = receive(there)
    assert (message["event"], message["run"]) == ("trouble", 3)
    assert type(told(message)) is kind and str(told(message)) == str(sent)


def test_the_end_of_the_other_side_is_heard_after_its_last_word():
    here, there = pair()
    send(here, {"event": "exit", "run": 1, "code": 0})
    here.close()
    with there:
        assert receive(there) == {"event": "exit", "run": 1, "code": 0}
        assert receive(there) is None


def test_the_last_words_of_a_side_that_ended_without_reading_are_heard():
    here, there = pair()
    send(there, {"event": "progress"})
    send(here, {"do": "signal", "signal": 9})
    here.close()
    with there:
        assert receive(there) == {"do": "signal", "signal": 9}
        assert receive(there) is None


@pytest.mark.parametrize("size", [10, 100_000, 20_000_000])
def test_an_order_may_be_of_any_size(size):
    """A socket's buffer holds 212,992 bytes."""
    here, there = pair()
    with here, there:
        order = Order(1, 1, "me", "runs.db", "x" * size, 0, "folder")
        send(here, start(order))
        send(here, {"do": "signal"})
        assert receive(there)["order"]["spec"] == order.spec
        assert receive(there) == {"do": "signal"}


def test_a_side_that_does_not_wait_is_told_that_the_other_is_behind():
    here, there = pair()
    with here, there, pytest.raises(BlockingIOError):
        for size in (1, 100_000) * 10_000:
            send(here, {"x": "x" * size}, socket.MSG_DONTWAIT)
