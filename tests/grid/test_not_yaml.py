"""What is no YAML is refused in words of what stands there, at its place, with what to do."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import Faults
from kdx.grid.not_yaml import not_utf8
from kdx.grid.source import read


def refusal(tmp_path: Path, content: str | bytes) -> str:
    """The message about a file, without its folder."""
    file = tmp_path / "grid.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Faults) as caught:
        read(file, [])
    (fault,) = caught.value.faults
    return str(fault).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "place", "problem", "hint"),
    [
        ("data:\n\tcorpus: x\n", "2:1", "the line is indented by a tab", "spaces"),
        ("data:\n \tcorpus: x\n", "2:2", "the line is indented by a tab", "spaces"),
        (
            "data:\n  corpus: x\n   seed: 5\n",
            "3:8",
            "the line is indented deeper than line 2, which has its value already",
            "begin it in column 3, as line 2",
        ),
        ("task: x\n seeds: 3\n", "2:7", "deeper than line 1", "begin it in column 1, as line 1"),
        (
            "data:\n    corpus: x\n  seed: 5\n",
            "3:3",
            "the line begins in column 3, where no mapping around it does",
            "begin it in column 1 or 5",
        ),
        (
            "tables:\n  - name: t\n     caption: c\n",
            "3:13",
            "the line is indented deeper than line 2, which has its value already",
            "begin it in column 5, as line 2",
        ),
        (
            "a:\n  b: 1\nc:\n   d: 1\n  e: 1\n",
            "5:3",
            "the line begins in column 3, where no mapping around it does",
            "begin it in column 1 or 4",
        ),
        (
            "tables:\n   - name: t\n    caption: c\n",
            "3:5",
            "the line begins in column 5, where no mapping around it does",
            "begin it in column 1 or 6",
        ),
        (
            "# text\n task: x\nseeds: 3\n",
            "3:1",
            "the line begins in column 1, line 2 in column 2",
            "begin line 2 in column 1",
        ),
        ("task: x\n- a\n", "2:1", "an item of a list among keys", "indent the list below its key"),
        ("task x\nseeds: 3\n", "2:6", "line 1 is no key with a value", "a colon and a space"),
        ("description: a: b\n", "1:15", "a second `: ` on one line", "in quotes"),
        ("axes:\n  kernel: [rbf\n  norm: [pre]\n", "3:7", "the `[` of line 2 is not closed", "write `]`, or a `,`"),
        ("axes: {kernel: [rbf]\nseeds: 3\n", "2:1", "the `{` of line 1 is not closed", "write `}`, or a `,`"),
        ('name: "x\nseeds: 3\n', "3:1", "the quotation mark of line 1 is not closed", 'the closing "'),
        ("name: @me\n", "1:7", "`@` cannot begin a value", "in quotes"),
    ],
)
def test_a_slip_is_told_in_plain_words_at_its_place(tmp_path, text, place, problem, hint):
    for line_end in ("\n", "\r\n"):
        first, *rest = refusal(tmp_path, text.replace("\n", line_end)).splitlines()
        assert first.startswith(f"grid.yaml:{place}: not YAML: ") and problem in first
        assert len(rest) == 1 and hint in rest[0]


def test_a_control_character_is_refused_where_it_stands(tmp_path):
    assert refusal(tmp_path, "task: x\nname: é\x7f\n") == "grid.yaml:2:8: control character U+007F\n  hint: remove it"


def test_a_list_under_a_key_that_has_a_value_is_refused(tmp_path):
    (tmp_path / "grid.yaml").write_text("kernel: rbf\n  - linear\n")
    faults: list = []
    read(tmp_path / "grid.yaml", faults)
    assert "grid.yaml:1:9: a list under a key that has a value already, `rbf - linear`" in str(faults[0])
    (tmp_path / "grid.yaml").write_text("description: some words\n  and more - words\n")
    read(tmp_path / "grid.yaml", faults)
    assert len(faults) == 1


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    (tmp_path / "grid.yaml").write_bytes(b"\xef\xbb\xbftask: x\r\ndata:\r\n  corpus: y\r\n")
    assert read(tmp_path / "grid.yaml", []).plain() == {"task": "x", "data": {"corpus": "y"}}


@pytest.mark.parametrize("encoding", ["latin1", "utf-16", "utf-16le", "utf-16be", "utf-32"])
def test_another_encoding_is_named_with_the_command_that_converts_it(tmp_path, encoding):
    text = "seeds: 3\nname: café\n"
    message = refusal(tmp_path, text.encode(encoding))
    if encoding == "latin1":
        assert message.startswith("grid.yaml:2:10: byte 0xe9 is not UTF-8\n")
        assert "if it is `é`, the file is Latin-1" in message
    else:
        assert message.startswith(f"grid.yaml: this is {encoding.upper()}, not UTF-8\n")
    command = message[message.index("iconv") :]
    assert f"iconv -f {encoding} -t utf-8 grid.yaml" in command
    subprocess.run(shlex.join(["bash", "-c", command]), shell=True, cwd=tmp_path, check=True)
    assert read(tmp_path / "grid-utf8.yaml", []).plain() == {"seeds": 3, "name": "café"}


def test_what_is_no_text_is_refused(tmp_path):
    assert refusal(tmp_path, b"PK\x03\x04\xff\xfe\x00").startswith("grid.yaml:1:7: this is no text")
    assert "save the file as UTF-8" in refusal(tmp_path, b"a: \x81\n")


@given(st.binary(max_size=50))
def test_bytes_are_refused_unless_they_are_text(raw):
    fault = not_utf8("grid.yaml", raw)
    try:
        readable = "\0" not in raw.decode("utf-8")
    except UnicodeDecodeError:
        readable = False
    assert (fault is None) == readable
