"""Rows as text, CSV and JSON."""

import csv
import json
import math
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st

from kdx.report.writers.rows import to_csv, to_json, to_text

VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(max_size=8)
ROWS = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width)))
HOSTILE = "\x1b[2J‮\u200b\r|"


def read(lines) -> list[list[str]]:
    return list(csv.reader(StringIO("".join(f"{line}\n" for line in lines))))


def test_text_is_aligned_with_numbers_to_the_right():
    rows = [("rbf", 1.5, None), ("exponential", 10.25, 7)]
    assert list(to_text(("kernel", "score", "n"), rows)) == [
        "kernel       score  n",
        "rbf            1.5",
        "exponential  10.25  7",
    ]


def test_no_rows_leave_the_header():
    assert list(to_text(("a", "b"), [])) == ["a  b"]
    assert list(to_csv(("a", "b"), [])) == ['"a","b"']
    assert list(to_json(("a", "b"), [])) == ["[]"]


def test_csv_quotes_what_has_to_be_quoted_and_leaves_null_empty():
    assert read(to_csv(("a", "b"), [('x, "y"\nz', None), (b"\x00\xff", 1e-300)])) == [
        ["a", "b"],
        ['x, "y"\nz', ""],
        ["00ff", "1e-300"],
    ]


def test_formulas_are_texts_in_a_spreadsheet_and_numbers_stay_numbers(figure):
    rows = [("=1+1",), ("@x",), ("+cmd",), ("-1.5",), ("-x",), (-1.5,), ("＝1+1",), ("－1_0",)]
    shown = [row[0] for row in read(to_csv(("=header",), rows))]
    assert shown == ["'=header", "'=1+1", "'@x", "'+cmd", "-1.5", "'-x", "-1.5", "'＝1+1", "'－1_0"]
    texts = sum(field.startswith("'") for field in shown)
    figure(f"{texts} formulas told as text, {len(shown) - texts} numbers as they are")


def test_a_semicolon_makes_no_field_of_its_own_where_it_separates():
    (_, line) = to_csv(("a", "b"), [("x;=HYPERLINK(1)", 1.5)])
    assert line == '"x;=HYPERLINK(1)",1.5'
    assert next(csv.reader([line], delimiter=";"))[0].startswith("x;=")


def test_what_drives_a_terminal_comes_out_inert_everywhere(figure):
    shown = ""
    for writer in (to_text, to_csv, to_json):
        text = "\n".join(writer((f"c{HOSTILE}",), [(f"v{HOSTILE}",), ("\udcff",)]))
        assert not set(text) & {"\x1b", "‮", "\u200b", "\r", "\udcff"}, writer
        shown += text
    active = sum(not sign.isprintable() for sign in shown.replace("\n", ""))
    assert active == 0
    figure(f"{len(shown.encode())} bytes of text, CSV and JSON, {active} signs that drive anything")


@given(ROWS)
def test_json_gives_every_value_back(rows):
    columns = tuple(map(str, range(len(rows[0]) if rows else 1)))
    shown = json.loads("\n".join(to_json(columns, rows)))
    for row, values in zip(rows, shown, strict=True):
        for value, back in zip(row, values.values(), strict=True):
            infinite = isinstance(value, float) and math.isinf(value)
            assert back == (None if infinite else value.hex() if isinstance(value, bytes) else value)


@given(ROWS)
def test_csv_and_text_have_a_line_for_each_row(rows):
    columns = tuple(map(str, range(len(rows[0]) if rows else 1)))
    assert [len(row) for row in read(to_csv(columns, rows))] == [len(columns)] * (len(rows) + 1)
    assert all(len(line.splitlines()) <= 1 for line in to_text(columns, rows))
    assert len(list(to_text(columns, rows))) == len(rows) + 1
