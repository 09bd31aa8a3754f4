"""A grid file is read with places and without YAML's traps."""

import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import Faults, KdxError, Place
from kdx.grid.not_yaml import not_utf8
from kdx.grid.source import Node, read


def parse(tmp_path: Path, text: str) -> tuple[Node, list[KdxError]]:
    file = tmp_path / "grid.yaml"
    file.write_text(text)
    faults: list[KdxError] = []
    return read(file, faults), faults


def value(tmp_path: Path, text: str):
    node, faults = parse(tmp_path, f"key: {text}\n")
    assert not faults
    return node.plain()["key"]


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("1e-3", 0.001),
        ("1E5", 1e5),
        (".5", 0.5),
        ("-2.", -2.0),
        ("12", 12),
        ("-0", 0),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("'1'", "1"),
        ('"no"', "no"),
        ("[a, 1, 2.5]", ["a", 1, 2.5]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path, text, read_as):
    result = value(tmp_path, text)
    assert result == read_as and type(result) is type(read_as)


def test_nested_aliases_do_not_unfold(tmp_path, figure):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for one, next_one in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{next_one}: &{next_one} [{','.join([f'*{one}'] * 10)}]\n"
    tracemalloc.start()
    begun = time.monotonic()
    with pytest.raises(Faults, match=r"2:8: alias `\*a`"):
        parse(tmp_path, bomb)
    seconds, (_, peak) = time.monotonic() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    leaves = 10 ** bomb.count("\n")
    figure(f"{len(bomb)} bytes for {leaves:,} leaves refused in {seconds:.3f} s with {peak / 1e3:.0f} kB")


def test_two_ways_to_write_a_letter_are_one(tmp_path, figure):
    composed, apart = (parse(tmp_path, f"name: {letter}tude")[0].value["name"].value for letter in ("é", "e\u0301"))
    assert composed == apart == "étude"
    figure(f"{apart!a} in both forms")


def test_an_absent_file_and_a_large_one_are_refused(tmp_path, figure):
    with pytest.raises(Faults, match="cannot read the grid: No such file"):
        read(tmp_path / "absent.yaml", [])
    large = tmp_path / "large.yaml"
    large.write_text("a: " + "x" * 1_000_001)
    begun = time.monotonic()
    with pytest.raises(Faults, match="at most 1000000 bytes"):
        read(large, [])
    figure(f"{large.stat().st_size:,} bytes refused in {time.monotonic() - begun:.3f} s")


def test_every_value_knows_its_place(tmp_path):
    node, _ = parse(tmp_path, "a:\n  - 1\n  - b: 2\n")
    file = str(tmp_path / "grid.yaml")
    assert node.at(("a", 1, "b")) == Place(file, 3, 8)
    assert node.key(("a", 1, "b")) == Place(file, 3, 5)
    assert node.at(("a", 1, "absent")) == Place(file, 3, 5)


def test_overlaying_merges_mappings_and_replaces_the_rest(tmp_path):
    under, _ = parse(tmp_path, "a: {x: 1, y: [1, 2]}\nb: 1\n")
    over, _ = parse(tmp_path, "a: {y: [3], z: 4}\n")
    assert under.overlaid(over).plain() == {"a": {"x": 1, "y": [3], "z": 4}, "b": 1}


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "grid.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        read(file, [])
    except Faults as refusal:
        assert str(refusal)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    """The message about a file, without its folder."""
    file = tmp_path / "grid.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Faults) as caught:
        read(file, [])
    (fault,) = caught.value.faults
    return str(fault).replace(f"{tmp_path}/", "")


def test_a_dash_within_further_lines_of_a_value_begins_no_list(tmp_path):
    assert value(tmp_path, "some words\n  and more - words") == "some words and more - words"


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    (tmp_path / "grid.yaml").write_bytes(b"\xef\xbb\xbftask: x\r\ndata:\r\n  corpus: y\r\n")
    assert read(tmp_path / "grid.yaml", []).plain() == {"task": "x", "data": {"corpus": "y"}}


def test_what_is_no_text_is_refused(tmp_path):
    assert refusal(tmp_path, b"PK\x03\x04\x00").startswith("grid.yaml:1:5: this is no text")
    message = "grid.yaml:2:4: byte 0x81 is not UTF-8\n  hint: save the file as text in UTF-8"
    assert refusal(tmp_path, b"a: 1\nb: \x81\n") == message


@given(st.binary(max_size=50))
def test_bytes_are_refused_unless_they_are_text(raw):
    fault = not_utf8("grid.yaml", raw)
    try:
        readable = "\0" not in raw.decode("utf-8")
    except UnicodeDecodeError:
        readable = False
    assert (fault is None) == readable


def test_a_tag_is_refused_and_runs_no_code(tmp_path):
    _, faults = parse(tmp_path, f"key: !!python/object/apply:os.mkdir ['{tmp_path}/folder']\n")
    assert "1:6: tag `tag:yaml.org,2002:python/object/apply:os.mkdir`" in str(faults[0])
    assert not (tmp_path / "folder").exists()
