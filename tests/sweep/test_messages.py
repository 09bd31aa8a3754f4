"""Packets between a sweep and its server arrive whole, in order, and end with the other side."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import AccessError, ChangedError, DatabaseError, KdxError, ServerError, StorageError
from kdx.run_options import RunOptions
from kdx.sweep.messages import (
    Work,
    describe_error,
    describe_exit,
    error_of,
    receive,
    send,
    start,
    trouble,
)
from kdx.vocabulary import IfChanged

texts = st.text(max_size=200)
options = st.builds(RunOptions, st.sampled_from(IfChanged), st.floats(min_value=0, exclude_min=True))
works = st.builds(
    Work,
    st.integers(1),
    st.none() | st.integers(1),
    texts,
    texts,
    texts,
    st.integers(0, 2**32),
    texts,
    options,
    st.none() | texts,
    evaluations=st.tuples(texts),
)


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@given(st.lists(works, max_size=5))
def test_runs_arrive_as_they_were_sent(sent):
    here, there = pair()
    with here, there:
        for claimed in sent:
            send(here, start(claimed))
        received = [receive(there) for _ in sent]
    assert [Work(**message["work"]) for message in received] == sent
    assert all(message["do"] == "start" for message in received)


@pytest.mark.parametrize("kind", [KdxError, AccessError, DatabaseError, StorageError, ChangedError, ServerError])
def test_a_trouble_arrives_as_the_error_it_was(kind):
    here, there = pair()
    with here, there:
        sent = kind("the disk is full", place="/here", allowed="less", hint="free some space")
        send(here, trouble(3, sent))
        message = receive(there)
    assert (message["event"], message["run"]) == ("trouble", 3)
    assert type(error_of(message)) is kind and str(error_of(message)) == str(sent)


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
def test_a_claimed_run_may_be_of_any_size(size):
    """A socket's buffer holds 212,992 bytes."""
    here, there = pair()
    with here, there:
        claimed = Work(1, 1, "me", "runs.db", "x" * size, 0, "folder")
        send(here, start(claimed))
        send(here, {"do": "signal"})
        assert receive(there)["work"]["spec"] == claimed.spec
        assert receive(there) == {"do": "signal"}


def test_a_side_that_does_not_wait_is_told_that_the_other_is_behind():
    here, there = pair()
    with here, there, pytest.raises(BlockingIOError):
        for size in (1, 100_000) * 10_000:
            send(here, {"x": "x" * size}, socket.MSG_DONTWAIT)


@pytest.mark.parametrize(
    ("code", "text"),
    [(-9, "killed by SIGKILL"), (-40, "killed by signal 40"), (-34, "killed by SIGRTMIN"), (70, "ended with code 70")],
)
def test_how_a_worker_ended_is_told_whatever_the_signal(code, text):
    assert describe_exit(code) == text


@pytest.mark.parametrize(
    ("line", "described"),
    [
        ("raise ValueError('no\\nmore')", "my_kernels.py:2 in weight: ValueError: no"),
        ("import json; json.loads('')", "my_kernels.py:2 in weight: json.decoder.JSONDecodeError: Expecting value: "),
        ("raise MemoryError", "out of memory: MemoryError"),
        ("raise KdxError('`x` is no word')", "`x` is no word"),
    ],
)
def test_an_error_is_described_by_the_last_line_of_the_users_own_code(line, described):
    own = {"KdxError": KdxError}
    exec(compile(f"def weight():\n    {line}", "/grids/my_kernels.py", "exec"), own)
    with pytest.raises(Exception) as raised:
        own["weight"]()
    assert describe_error(raised.value).startswith(described)


def test_an_error_of_installed_code_is_described_without_a_place():
    with pytest.raises(ValueError) as raised:
        Work()
    of_kdx = raised.value.__traceback__.tb_next
    assert describe_error(raised.value.with_traceback(of_kdx)).startswith("pydantic_core")
