"""What stands behind a number."""

from pathlib import Path

import pytest
from each import each
from sweeps import cell, run, scored, sweep

from kdx.errors import KdxError
from kdx.grid.identity import cell_id
from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.shipped import names
from kdx.report.tables import tables
from kdx.report.trace import find, rows, to_json, trace
from kdx.store.records import AttemptRecord, CellRecord, Provenance, RunState

CELLS = [
    cell("a", labels={"approach": "No position", "kernel": "rbf"}, kernel="rbf"),
    cell("b", labels={"approach": "No position", "kernel": "linear"}, kernel="linear"),
    cell("c", labels={"approach": "Eq. 9", "kernel": "rbf"}, kernel="rbf", position="product"),
]
RUNS = [*scored("a", (1.0, 2.0), (3.0, 4.0)), run("b", 0, state=RunState.FAILED, id=50), run("c", 0, 5.0, 6.0, id=60)]
LONG = "Tsai et al. (2019), Eq. 5"
SPEC = {"name": "main", "rows": ["approach", "kernel"]}
CODE = Provenance("d" * 64, "c" * 64, {"torch": "2"}, {"test/bleu": "sacrebleu"})


def swept(**more):
    return sweep(CELLS, RUNS, tables=[SPEC], provenance={0: CODE, 1: CODE}, **more)


@pytest.fixture
def table():
    (table,) = tables(swept())
    return table


@pytest.mark.parametrize("row", ["No position / rbf", "no position / RBF", "rbf / No position"])
@pytest.mark.parametrize("column", [None, "BLEU ↑", "bleu ↑", "bleu", "BLEU"])
def test_a_place_is_found_by_its_headers_without_case_and_arrows(table, row, column):
    assert find(table.layout, row, column) == (0, 0)


def test_words_that_only_one_header_has_will_do(table):
    assert find(table.layout, "linear", None) == (1, 0)
    assert find(table.layout, "Eq. 9", None) == (2, 0)
    (long,) = tables(sweep([cell("a", labels={"approach": LONG}), CELLS[2]], RUNS, tables=[SPEC]))
    for words in ("Tsai 2019", "eq 5 tsai", "Tsai, Eq. 5"):
        assert rows(long.layout)[find(long.layout, words, None)[0]].startswith(LONG)


def refusal(table, row, column=None) -> str:
    with pytest.raises(KdxError) as caught:
        find(table.layout, row, column)
    return str(caught.value)


def test_words_of_several_headers_are_refused_with_those(table):
    assert refusal(table, "rbf") == (
        "table `main`: several rows are `rbf`\n  allowed: No position / rbf, Eq. 9 / rbf\n  hint: name one in full"
    )


def test_unknown_words_are_refused_with_the_nearest(table):
    assert refusal(table, "No positon / rbf") == (
        "table `main`: there is no row `No positon / rbf`\n"
        "  allowed: No position / rbf, No position / linear, Eq. 9 / rbf\n"
        "  hint: did you mean `No position / rbf`?"
    )
    assert refusal(table, "linear", "loss").startswith("table `main`: there is no column `loss`")
    assert refusal(table, "no positn, liner").endswith("\n  hint: did you mean `No position / linear`?"), "by its words"
    assert "hint" not in refusal(table, "zzzz")
    (empty,) = tables(sweep([], [], tables=[SPEC]))
    assert refusal(empty, "rbf") == "table `main`: there is no row `rbf`"


def test_a_place_that_the_grid_leaves_empty_is_refused():
    requests = {"name": "main", "rows": ["approach"], "columns": ["kernel"]}
    (table,) = tables(sweep(CELLS, RUNS, tables=[requests]))
    assert refusal(table, "Eq. 9", "linear").startswith("table `main`: nothing stands at Eq. 9, BLEU ↑ / linear")
    assert (
        refusal(table, "Eq. 9")
        == "table `main` has 2 columns\n  allowed: BLEU ↑ / rbf, BLEU ↑ / linear\n  hint: name a column"
    )


def test_headers_with_active_characters_are_found_as_they_are_printed():
    hostile = cell("h", labels={"approach": "a\x1b[31m‮", "kernel": "rbf"}, kernel="rbf")
    (table,) = tables(sweep([hostile], [], tables=[SPEC]))
    assert find(table.layout, r"a\x1b[31m\u202e", None) == (0, 0)


def test_a_number_has_its_runs_with_their_origins_and_attempts(table):
    tries = (AttemptRecord(1, "me", 1.0, 2.0, "completed", 0, 10, None, "e", 0, None),)
    traced = trace(swept(), table.layout, (0, 0), {1: tries})
    assert [item.record.seed for item in traced.runs] == [0, 1]
    assert [item.selected for item in traced.runs] == [False, True]
    assert [item.attempts for item in traced.runs] == [(), tries]
    assert traced.origins == [(CODE, [0, 1])]
    plain = to_json(traced)
    assert (plain["value"], plain["run"], plain["seed"], plain["cell"]) == (4.0, 1, 1, "a")
    assert [item["score"] for item in plain["runs"]] == [2.0, 4.0]
    assert plain["runs"][1]["attempts"][0]["owner"] == "me"
    assert plain["spec"] == CELLS[0].spec.plain


def test_a_place_without_a_number_has_its_runs_too(table):
    traced = trace(swept(), table.layout, (1, 0), {})
    assert (traced.cell.value, traced.runs[0].record.state, traced.origins) == (None, RunState.FAILED, [])


@each("name", [name for name in names() if not name.startswith("presets/")])
def test_the_grid_of_one_cell_makes_the_very_same_cell(name, tmp_path: Path):
    """Of every shipped grid, each cell's trace is a grid whose only cell has the same hash."""
    plan = load_grid(name)
    seen = set()
    for planned in plan.cells[:: max(1, len(plan.cells) // 4)]:
        if planned.id in seen:
            continue
        seen.add(planned.id)
        record = CellRecord(planned.id, 0, planned.labels, ResolvedSpec.of(planned.spec))
        runs = [run(planned.id, seed, 1.0, 1.0) for seed in (3, 7)]
        item = sweep([record], runs, axes=plan.axes, name=plan.name)
        (table,) = tables(item)
        path = tmp_path / "again.yaml"
        path.write_text(trace(item, table.layout, (0, 0), {}).grid)
        again = load_grid(path)
        assert [cell.id for cell in again.cells] == [planned.id] == [cell_id(planned.spec)]
        assert again.seeds == (3, 7)
