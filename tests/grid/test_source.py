"""A grid file is read with places and without YAML's traps."""

import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import Faults, KdxError, Place
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("key: 010", "1:6: `010` is octal to some and decimal to others"),
        ("key: .nan", "1:6: `.nan` is not a finite number"),
        ("key: -.inf", "1:6: `-.inf` is not a finite number"),
        ("key: 1e999", "1:6: `1e999` is not a finite number"),
        ("key: !!python/object/apply:os.system [x]", "1:6: tag `tag:yaml.org,2002:python/object/apply:os.system`"),
        ("key: !local 3", "1:6: tag `!local`"),
        ("a: 1\nb: 2\na: 3", "3:1: `a` stands twice; first at line 1"),
        ("? [a]\n: 1", "1:3: a list or a mapping as a key"),
        ('key: "a\\x1b[2Jb"', "1:6: a control character in 'a\\x1b[2Jb'"),
        ('key: "\\ud800"', None),
    ],
)
def test_traps_are_told_with_their_place(tmp_path, text, problem, figure):
    try:
        _, faults = parse(tmp_path, text + "\n")
    except Faults as fatal:
        faults = list(fatal.faults)
    assert faults
    if problem:
        assert f"{tmp_path}/grid.yaml:{problem}" in str(faults[0])
    figure(f"refused at {str(faults[0].place).removeprefix(f'{tmp_path}/')}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the grid is empty"),
        ("- a\n- b\n", "1:1: a grid is a mapping of keys to values"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document"),
        ("a: &x 1\nb: *x\n", "2:4: alias `*x`"),
        ("a: [1, 2\n", "not YAML"),
        ("a: b: c\n", "1:5: not YAML"),
        ("a: " + "[" * 60 + "]" * 60 + "\n", "nested too deep"),
        ("a: '\x00'\n", "1:5: this is no text"),
    ],
)
def test_what_is_no_grid_is_refused(tmp_path, text, problem, figure):
    begun = time.monotonic()
    with pytest.raises(Faults) as refusal:
        parse(tmp_path, text)
    assert problem in str(refusal.value)
    figure(f"{len(text)} bytes refused in {time.monotonic() - begun:.3f} s")


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


def test_a_file_that_is_not_text_is_refused_at_its_byte(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_bytes(b"name: x\nkey: \xff\n")
    with pytest.raises(Faults, match=r"grid.yaml:2:6: byte 0xff is not UTF-8"):
        read(file, [])


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
