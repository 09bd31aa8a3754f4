"""Whatever stands in a grid, it gives a plan or faults, and every fault has a place and plain words."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdx.errors import Faults, Place
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan

GOOD: dict[str, Any] = {
    "name": "good",
    "description": "Everything that a grid can say",
    "seeds": [0, 7],
    "tasks": {
        "translation": {"data": {"corpus": "synthetic-translation", "vocabulary": "bpe", "vocabulary_size": 300}},
        "prediction": {"data": {"corpus": "synthetic-language"}, "training": {"batch_tokens": 1024, "length": 64}},
    },
    "model": {"width": 64, "heads": 4, "dropout": 0.1},
    "training": {"steps": 10, "betas": [0.9, 0.98], "clip": None, "learning_rate": 1e-3},
    "filter": {"encoder-self": "causal"},
    "select": {"metric": "loss", "direction": "min"},
    "approaches": {
        "None": {"position": "none"},
        "Eq. 9": {"position": ["product"], "placement": ["decoder-self"], "symmetry": "symmetric"},
    },
    "axes": {"kernel": ["exponential", "rbf"], "training.warmup": [0, 5]},
    "tables": [{"name": "t", "caption": "c", "rows": ["approach", "kernel"], "columns": ["task", "training.warmup"]}],
}
WORDS = ["none", "full", "rbf", "direct-sum", "test/bleu", "valid/loss", "word", "bpe", "null", "../..", "a b", "", "×"]
TROUBLE = ["\x1b[2J", "\u202e", "\x00", "\ud7ff", "\U0001f600" * 40, "{problem} %s {0}", "!tag", "*alias", "&x", "\n\n"]


def deep(levels: int) -> Any:
    value: Any = "end"
    for level in range(levels):
        value = [value] if level % 2 else {"inner": value}
    return value


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(WORDS + TROUBLE),
    st.text(max_size=20),
)
wild = st.one_of(
    scalars,
    st.sampled_from([deep(10), deep(60), {}, [], [[]], [{}], ["rbf"] * 3]),
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
).map(copy.deepcopy)  # what is drawn is changed later


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for step, inner in pairs for found in ((*path, step), *places(inner, (*path, step)))]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good grid with one to three things changed, removed or added, and perhaps a few characters of it."""
    grid = copy.deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 3))):
        found = places(grid)
        if not found:
            break
        *path, last = draw(st.sampled_from(found))
        inner: Any = grid
        for step in path:
            inner = inner[step]
        match draw(st.sampled_from(["change", "change", "remove", "add"])):
            case "change":
                inner[last] = draw(wild)
            case "remove":
                del inner[last]
            case "add" if isinstance(inner, dict):
                inner[draw(st.sampled_from([*WORDS, *TROUBLE, "task", "extends", "kernel"]))] = draw(wild)
            case "add":
                inner.append(draw(wild))
    text = yaml.safe_dump(grid, allow_unicode=draw(st.booleans()), sort_keys=False)
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from([*TROUBLE, ":", "[", "}", "- ", "  ", "\t", "? ", "'"])) + text[at:]
    return text


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_any_grid_gives_a_plan_or_faults(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("grid") / "grid.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        assert isinstance(load_grid(file), Plan)
    except Faults as refusal:
        for fault in refusal.faults:
            assert fault.problem and (isinstance(fault.place, Place) or fault.place == str(file)), fault


def faults_of(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "grid.yaml"
    file.write_text(f"task: translation\ndata: {{corpus: text}}\n{text}\n")
    with pytest.raises(Faults) as refusal:
        load_grid(file)
    return [str(fault).removeprefix(f"{file}:") for fault in refusal.value.faults]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("model: 3", "3:8: `3` as model\n  allowed: a mapping"),
        ("model: [1]", "3:8: a list as model\n  allowed: a mapping"),
        (
            "norm: [pre, post]",
            "3:7: a list as norm\n  allowed: post, pre\n"
            "  hint: for a cell with each of them: axes: {norm: [pre, post]}",
        ),
        (
            "training: {steps: [1, 2]}",
            "3:19: a list as training.steps\n  allowed: a whole number from 1 on\n"
            "  hint: for a cell with each of them: axes: {training.steps: [1, 2]}",
        ),
        (
            "\tnorm: pre",
            "3:1: not YAML: the line is indented by a tab\n  hint: YAML is indented with spaces",
        ),
        ("tables: [3]", "3:10: `3` as tables\n  allowed: a mapping"),
        ("tables: [{name: 3, rows: kernel}]", "3:17: `3` as tables.name\n  allowed: text"),
        ("tables: [{name: t, rows: 5}]", "3:26: `5` as tables.rows\n  allowed: a list"),
        ("tables: [{rows: kernel}]", "3:10: `tables.name` is missing"),
        (
            "training: {betas: [0.9]}",
            "3:19: value 2 of `training.betas` is missing\n  allowed: a number",
        ),
        ("training: {steps: 0}", "3:19: `0` as training.steps\n  allowed: a whole number from 1 on"),
        ("filter: {encoder-self: none}", "3:24: unknown filter.encoder-self `none`\n  allowed: full, causal"),
        ("select: {metric: loss, on: x}", "3:24: unknown key `select.on`\n  allowed: metric, direction"),
        ("approaches: {A: {training: {step: 5}}}", "3:29: unknown key `training.step`"),
        ("axes: {training: [{step: 5}]}", "3:8: `training` as the name of an axis"),
        ("training: {clip: -1}", "3:18: `-1` as training.clip\n  allowed: a number above 0"),
        ("value: " + "x" * 2000, f"3:8: unknown value `{'x' * 80}…`"),
        ('value: "two\\nlines"', "3:8: unknown value `two lines`"),
    ],
)
def test_a_fault_is_told_in_the_words_of_the_grid(tmp_path, text, fault):
    assert faults_of(tmp_path, text)[0].startswith(fault)


def test_the_name_of_a_corpus_says_what_it_may_hold(tmp_path):
    file = tmp_path / "grid.yaml"
    file.write_text("task: translation\ndata: {corpus: ../secret}\n")
    with pytest.raises(Faults, match=r"2:16: `../secret` as data.corpus\n  allowed: letters, digits, and . _ - after"):
        load_grid(file)


def test_a_fault_that_every_cell_has_is_told_once(tmp_path):
    assert len(faults_of(tmp_path, "model: {width: 65}\naxes: {kernel: [exponential, rbf]}")) == 1


def test_a_long_axis_is_counted_as_fast_as_it_is_read(tmp_path):
    steps = ", ".join(map(str, range(1, 100_001)))
    (fault,) = faults_of(tmp_path, f"axes: {{training.steps: [{steps}]}}")
    assert fault.startswith("3:1: 100,000 runs\n  allowed: at most 10,000")
