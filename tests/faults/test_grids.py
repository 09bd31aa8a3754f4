"""No grid that is wrong starts anything, leaves anything, or shows a traceback."""

import contextlib
import sys

import pytest
import yaml
from conftest import count
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from kdx.cli.app import main

GRID = {
    "name": "hostile",
    "task": "prediction",
    "data": {"corpus": "synthetic-language"},
    "model": {"width": 16, "heads": 2},
    "training": {"steps": 10, "batch_tokens": 256, "length": 32},
    "axes": {"kernel": ["exponential", "rbf"]},
    "seeds": 2,
    "tables": [{"name": "one", "rows": ["kernel"]}],
}
PLACES = ["task", "data", "data.corpus", "model", "model.width", "model.heads", "training.steps", "training.clip",
          "training.learning_rate", "training.batch_tokens", "kernel", "position", "memory", "axes", "axes.kernel",
          "seeds", "tables", "extends", "preset", "filter", "select"]  # fmt: skip
SECTIONS = ["", "data", "model", "training", "axes", "filter", "evaluation"]

# Of no use anywhere: not a word, not a number in range, not a section.
nothing = st.one_of(
    st.sampled_from([float("nan"), float("inf"), -float("inf"), -1, -0.5, 10**400, 2.5e300, True, False, [], [[]]]),
    st.sampled_from(["../../etc/passwd", "/etc/passwd", "a\0b", "-rf", "CON", "x" * 300, "\x1b]0;owned\a", "‮abc", "é"]),
    st.sampled_from(["'; DROP TABLE run; --", "<script>", "$(reboot)", "{{7*7}}", "%s%n", "=1+1", "\ud7ff", "😀"]),
    st.text(max_size=30).map(lambda text: f"?{text}"),
    st.recursive(st.none(), lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=20),
    st.dictionaries(st.text(max_size=8).map(lambda key: f"?{key}"), st.integers(), min_size=1, max_size=3),
)
raw = st.sampled_from(
    [
        "!!python/object/apply:os.system ['touch owned']",
        "kernel: !!python/name:os.system",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "<<: {kernel: rbf}",
        "name: one\nname: two",
        "[" * 5000,
        "{" * 60 + "}" * 60,
        "\t- x",
        "name: one\n---\nname: two",
        "%YAML 9.9\n---\nname: x",
        "name: \x00",
        "? {complex: key}\n: 1",
        "- just\n- a list",
        "just words",
        "",
        "# nothing",
        "kernel: rbf: rbf",
        '"unclosed',
        "axes: {kernel: [" + ", ".join(["rbf"] * 3) + "]}",
        "task: prediction\ndata: {corpus: synthetic-language}\naxes: {"
        + ", ".join(
            f"{name}: [{', '.join(map(str, range(1, 60)))}]"
            for name in ("training.steps", "training.warmup", "training.record_every", "model.inner", "data.seed")
        )
        + "}",
    ]
)


@st.composite
def wrong(draw) -> str:
    """The text of a grid in which at least one thing is wrong."""
    kind = draw(st.sampled_from(["value", "key", "raw", "bytes"]))
    if kind == "raw":
        return draw(raw)
    grid = yaml.safe_load(yaml.safe_dump(GRID))
    if kind == "bytes":
        text = yaml.safe_dump(grid)
        at = draw(st.integers(0, len(text) - 1))
        return text[:at] + draw(st.sampled_from(["\x00", "\x07", "\ufffe", "]", "}", "@", "`", "\t\t:"])) + "\n: - ]"
    if kind == "key":
        section = draw(st.sampled_from(SECTIONS))
        holder = grid if not section else grid.setdefault(section, {})
        holder["?" + draw(st.text(max_size=20))] = draw(st.one_of(nothing, st.integers()))
    else:
        *path, last = draw(st.sampled_from(PLACES)).split(".")
        holder = grid
        for step in path:
            holder = holder.setdefault(step, {})
        holder[last] = draw(nothing)
        # What is wrong in one place may be right in another, so there is always a second fault.
        grid["colour"] = "blue"
    return yaml.dump(grid, allow_unicode=draw(st.booleans()))


def test_every_wrong_grid_is_refused_and_leaves_nothing(seed, figure, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kdx.sweep.local.LocalSweep.run", lambda self: pytest.fail("it started"))
    monkeypatch.setattr(sys, "argv", ["kdx", "sweep", "grid.yaml"])
    file, tried = tmp_path / "grid.yaml", []

    @seeded(seed)
    @settings(max_examples=count("GRIDS", 150), deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(wrong())
    def refused(text: str) -> None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        code = None
        with contextlib.suppress(SystemExit):
            try:
                main()
            except SystemExit as end:
                code = end.code
                raise
        told = capsys.readouterr()
        assert code == 2, (told.err, text)
        assert "Traceback" not in told.err and not told.out
        assert told.err.strip() and not any(sign in told.err for sign in "\x1b\x00\x07")
        assert [path.name for path in tmp_path.iterdir()] == ["grid.yaml"], text
        tried.append(text)

    refused()
    figure(f"{len(tried)} grids, {len(tried)} refused with exit code 2, SEED={seed}")
