"""Data to stdout, talk to stderr, and nothing that can drive a terminal."""

import json
import math
import os
import pty
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.cli import console
from kdx.cli.console import _Messages, out, out_json, say
from kdx.errors import StorageError


def test_talk_goes_to_stderr_and_data_to_stdout(capsys):
    say("talk\x07")
    out("data")
    out("line\n")
    assert capsys.readouterr() == ("data\nline\n", "talk\\x07\n")


def test_a_table_is_drawn_without_a_terminal_in_plain_text(capsys):
    from rich.table import Table

    table = Table("a", box=None)
    table.add_row("b")
    out(table)
    written = capsys.readouterr().out
    assert [line.strip() for line in written.splitlines()] == ["a", "b"] and "\x1b" not in written


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


def nulled(value):
    if isinstance(value, dict):
        return {key: nulled(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [nulled(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(json_values)
def test_json_is_json_with_null_for_what_is_no_number(value):
    with pytest.MonkeyPatch.context() as patch:
        written = []
        patch.setattr("kdx.cli.console.out", written.append)
        out_json(value)
    assert json.loads(written[0], parse_constant=pytest.fail) == nulled(value)


@pytest.fixture(params=[pytest.param(os.pipe, id="pipe"), pytest.param(pty.openpty, id="terminal")])
def ends(request):
    """The reader's and the writer's end of a channel."""
    reads, writes = request.param()
    yield reads, writes
    os.close(reads)
    os.close(writes)


def test_a_reader_that_stalls_is_not_waited_for_and_hears_again_once_it_reads(ends):
    reads, writes = ends
    messages = _Messages(writes)
    messages.waits = 0.1

    def write_more_than_there_is_room_for():
        for _ in range(200):
            assert messages.write(b"x" * 5000) == 5000

    writer = threading.Thread(target=write_more_than_there_is_room_for, daemon=True)
    writer.start()
    writer.join(60)
    assert not writer.is_alive(), "it waits for ever"

    heard = bytearray()

    def read():
        while not heard.endswith(b"!"):
            heard.extend(os.read(reads, 65536))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while reader.is_alive():
        messages.write(b"heard!")
        reader.join(0.1)
    assert len(heard) < 200 * 5000 and heard.endswith(b"heard!")


def test_a_reader_that_is_slow_gets_every_message(ends):
    reads, writes = ends
    messages = _Messages(writes)
    writer = threading.Thread(target=messages.write, args=(b"x" * 300_000,), daemon=True)
    writer.start()
    heard = 0
    while heard < 300_000:
        heard += len(os.read(reads, 1000))
    writer.join(60)
    assert heard == 300_000


def test_a_closed_stdout_takes_no_result_in_silence(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StorageError, match="stdout is closed"):
        console.prepare_streams()


def test_a_column_without_words_is_left_out():
    def lines(*rows) -> list[list[str]]:
        return [line.split() for line in console.table(("name", "tags", "n"), rows, optional=("tags",), apart=True)]

    assert lines(("a", "", 1), ("b", "", 2)) == [[], ["name", "n"], ["a", "1"], ["b", "2"]]
    assert lines(("a", "odd", 1), ("b", "", 2))[1:] == [["name", "tags", "n"], ["a", "odd", "1"], ["b", "2"]]
    assert lines() == []
