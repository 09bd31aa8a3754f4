"""On a terminal of 80 columns nothing is broken inside a word, a hash, or a command to copy."""

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from grids import TINY
from looked_after import failed, interrupted, learned, registered, typed

from kdx.cli import console
from kdx.cli.app import app
from kdx.errors import KdxError
from kdx.report.writers.styles import styled

GRID = """
approaches:
  No position: {position: none}
  Vaswani et al. (2017), Eq. 4: {position: direct-sum}
  Tsai et al. (2019), Eq. 9: {position: product, symmetry: symmetric}
axes: {kernel: [exponential, rbf], training.learning_rate: [1e-3, 2e-3]}
"""
WIDE, NARROW = 10_000, 80
ESCAPES = re.compile("\x1b\\[[0-9;]*[mK]|\r")


class Screen(io.StringIO):
    """What a terminal gets."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch, data_home):
    """Returns what a command shows on a terminal of so many columns: data, then messages."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run(columns: int, *words: str, raw: bool = False) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        with redirect_stdout(Screen()) as data, redirect_stderr(Screen()) as messages:
            try:
                app(words, standalone_mode=False)
            except KdxError as fault:
                console.error(fault)
        seen = data.getvalue() + messages.getvalue()
        return seen if raw else ESCAPES.sub("", seen)

    return run


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A folder with twelve cells of two seeds, whose runs are completed, failed, interrupted, and yet to come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("swept"))
        runs = registered(TINY % {"steps": 10, "seeds": 2} + GRID)
        text = "these learning rates are those of the second appendix, not of the first one"
        typed("note", "tiny", text, "--tag", "odd")
        for run in runs[:6]:
            learned(run, 6.0 + run.id / 7)
        failed(runs[6], "kernels.py:16 in weight: RuntimeError: the size of tensor a (64) must match that of tensor b")
        interrupted(runs[7], 5)
        yield Path.cwd(), runs[0].cell_id


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "status tiny",
        "status tiny state=failed",
        "show 1",
        "show 7",
        "show tiny",
        "show tiny --plans",
        "show CELL",
        "plan grid.yaml --set seeds=3 --set training.warmup=5",
        "plan grid.yaml --all",
        "data list",
        "data info multi30k",
        "diff 1 2",
        "logs 1",
        "trace tiny 'Vaswani 2017 exponential 0.001'",
        "trace tiny 'Vaswani 2017 exponential 0.001' --full",
        "doctor",
        "gc",
        "gc --keep none",
        "report tiny",
        "trace tiny 'Vaswni 2017'",
        "status tinny",
        "status tiny state=faild",
        "plan grid.yaml --set training.stepz=3",
        "data info multi3k",
        "show 99",
    ],
)
def test_nothing_is_broken_at_80_columns(shown, swept, monkeypatch, command):
    folder, cell = swept
    monkeypatch.chdir(folder)
    words = shlex.split(command.replace("CELL", cell[:8]))
    wide, narrow = (shown(columns, *words) for columns in (WIDE, NARROW))
    assert [line for line in narrow.splitlines() if len(line) > NARROW and len(line.split()) > 1] == []
    assert named(narrow) <= named(wide)
    whole = re.sub(r" \\\n +", " ", narrow)
    assert [each for each in re.findall(r": (kdx [^;\n]+)", wide) if each not in whole] == []


def named(text: str) -> set[str]:
    """Its words, without what numbers, rules and shortened names are made of."""
    return {word.strip(":,") for word in text.split() if re.search(r"[^\W\d_]", word)}


def test_states_are_in_colour_on_a_terminal_that_has_colours_and_nothing_else_is(shown, swept, monkeypatch):
    monkeypatch.chdir(swept[0])
    monkeypatch.setenv("TERM", "xterm")
    plain = shown(120, "status", "tiny", raw=True)
    assert "\x1b" not in plain, "NO_COLOR"
    monkeypatch.delenv("NO_COLOR")
    coloured = shown(120, "status", "tiny", raw=True)
    words = re.findall("\x1b\\[(\\d+)m(.*?)\x1b\\[0m", coloured)
    assert set(words) == {("32", "completed"), ("31", "failed"), ("33", "interrupted")}
    assert ESCAPES.sub("", coloured) == plain
    assert "\x1b" not in typed("status", "tiny").output, "a pipe"


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("holds", "green"),
        ("holds, confounded by memory", "yellow"),
        ("does not hold", "red"),
        ("does not hold, confounded", "yellow"),
        ("cannot tell", "yellow"),
        ("A1: does not hold (prediction): order matters", "red"),
        ("diverged 2/3", "red"),
        ("3 runs: 2 completed", "green"),
        ("not tested", None),
        ("a cup that holds water", None),
        ("failed-to-learn", None),
        ("the kernel failed", None),
    ],
)
def test_a_verdict_or_a_state_has_its_colour_where_it_is_one(text, style):
    assert [span.style for span in styled(text).spans] == [style] * (style is not None)
