"""Where cells stand in a table, and every way in which a table does not fit its grid."""

from pathlib import Path
from typing import Any

import pytest

from kdx.grid import table_layout as module
from kdx.grid.load import load_grid
from kdx.grid.plan import TableSpec
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.spec import CellSpec
from kdx.grid.table_layout import NO_CHOICE, Labelled, LayoutBuilder, factor_value


def cell(labels: dict[str, str] | None = None, /, **choices: Any) -> Labelled:
    spec = CellSpec.model_validate({"task": "translation", "data": {"corpus": "synthetic"}, **choices})
    return labels or {}, ResolvedSpec.of(spec)


@pytest.mark.parametrize(
    ("factor", "word"),
    [
        ("kernel", "rbf"),
        ("position", "direct-sum+product"),
        ("placement", "encoder-self/decoder-self"),
        ("training.learning_rate", "0.0005"),
        ("training.betas", "0.9/0.98"),
        ("training.steps", "1000"),
        ("filter.decoder-self", "causal"),
        ("data.vocabulary_size", "none"),
        ("approach", "Ours, Eq. 9"),
        ("unheard-of", None),
        ("training", None),
        ("kernel.width", None),
    ],
)
def test_a_factor_has_the_words_of_the_grid(factor: str, word: str | None) -> None:
    labels, spec = cell(
        {"approach": "Ours, Eq. 9"},
        kernel="rbf",
        position=["product", "direct-sum"],
        inject="per-layer",
        placement=["decoder-self", "encoder-self"],
        training={"learning_rate": 5e-4},
    )
    assert factor_value(labels, spec, factor) == word


def test_headers_follow_the_plan_factor_by_factor() -> None:
    cells = [cell(kernel=k, position=p) for k in ("rbf", "exponential") for p in ("product", "none")]
    layout = LayoutBuilder(cells).build(TableSpec(name="main", rows=("position", "kernel")))
    assert layout.rows == (
        ("product", "rbf"),
        ("product", "exponential"),
        ("none", "rbf"),
        ("none", "exponential"),
    )
    assert layout.columns == ((),)
    assert layout.at == {(0, 0): 0, (2, 0): 1, (1, 0): 2, (3, 0): 3}


def test_numbers_stand_in_the_order_of_the_plan_not_of_the_alphabet() -> None:
    cells = [cell(training={"steps": steps}) for steps in (1000, 200, 30)]
    table = TableSpec(name="main", rows=("task",), columns=("training.steps",))
    assert LayoutBuilder(cells).build(table).columns == (("1000",), ("200",), ("30",))
    assert LayoutBuilder([]).build(table).columns == ()


def test_places_that_the_plan_leaves_empty_are_absent() -> None:
    cells = [cell(kernel="rbf", symmetry="symmetric"), cell(kernel="exponential")]
    layout = LayoutBuilder(cells).build(TableSpec(name="main", rows=("kernel",), columns=("symmetry",)))
    assert layout.at == {(0, 0): 0, (1, 1): 1}


def test_a_cell_without_an_axis_that_others_have_has_a_header_of_its_own() -> None:
    cells = [cell({"approach": "Ours"}, kernel="rbf"), cell({}, kernel="exponential")]
    layout = LayoutBuilder(cells).build(TableSpec(name="main", rows=("approach",)))
    assert layout.rows == (("Ours",), (NO_CHOICE,))


def test_one_cell_under_two_labels_may_share_a_place() -> None:
    # Without positions every placement is the same cell.
    cells = [cell({"placement": word}, position="none") for word in ("encoder-self", "decoder-self")]
    layout = LayoutBuilder(cells).build(TableSpec(name="main", rows=("position", "placement")))
    assert layout.rows == (("none", "none"),)
    assert layout.at == {(0, 0): 0}


def test_a_table_may_be_of_some_cells_only() -> None:
    cells = [cell(kernel=k, norm=n) for k in ("rbf", "exponential") for n in ("pre", "post")]
    layout = LayoutBuilder(cells).build(TableSpec(name="main", rows=("kernel",), where={"norm": "post"}))
    assert layout.rows == (("rbf",), ("exponential",))
    assert layout.at == {(0, 0): 1, (1, 0): 3}
    heated = [cell(kernel="rbf", temperature=temperature) for temperature in (1.0, 2.0)]
    layout = LayoutBuilder(heated).build(TableSpec(name="main", rows=("kernel",), where={"temperature": 2}))
    assert layout.at == {(0, 0): 1}, "2 is 2.0"


def test_however_many_tables_there_are_a_factor_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell(kernel=k, position=p) for k in ("rbf", "exponential") for p in ("product", "none")]
    factors: list[str] = []
    looked_up = module.factor_value
    monkeypatch.setattr(module, "factor_value", lambda *cell: factors.append(cell[2]) or looked_up(*cell))
    layouts = LayoutBuilder(cells)
    for name in "abc":
        layouts.build(TableSpec(name=name, rows=("position", "kernel"), columns=("placement",)))
    assert sorted(set(factors)) == ["kernel", "placement", "position"] and len(factors) == 3 * len(cells)


GRID = """
task: translation
data: {corpus: synthetic-translation}
axes: {kernel: [rbf, linear], norm: [pre, post]}
tables:
"""


def test_a_word_of_no_table_and_of_the_mapping_form_are_the_same_baseline(tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    table = "- {name: %s, rows: kernel, columns: norm, baseline: %s}\n"
    file.write_text(GRID + table % ("a", "pre") + table % ("b", "{norm: pre}") + table % ("c", "{}"))
    one, other, none = load_grid(file).tables
    assert one.baseline == other.baseline == {"norm": "pre"} and none.baseline == {}
