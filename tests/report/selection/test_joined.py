"""Several sweeps as one: a cell that several plan is one cell with the runs of all."""

from dataclasses import replace

import pytest
from sweeps import cell, run, seeded, sweep

from kdx.errors import KdxError
from kdx.grid.plan import TableSpec
from kdx.report.selection.joined import joined, names
from kdx.report.table.layout import Layout, lay_out
from kdx.report.tables import tables
from kdx.store.records import SweepRecord

RBF, LINEAR = cell("a", kernel="rbf"), cell("b", kernel="linear")
KERNELS = TableSpec(name="t", rows=("kernel",))
BY_SWEEP = TableSpec(name="t", rows=("kernel",), columns=("sweep",))


def monday(*seeds: int) -> SweepRecord:
    """The cell `a` with the runs of some seeds; of each the score is ten times the seed."""
    runs = [run("a", seed, 10.0 * seed, 10.0 * seed, id=seed) for seed in seeds]
    return sweep([RBF], runs, name="monday", axes=["kernel"])


def tuesday(*seeds: int) -> SweepRecord:
    """The cells `a` and `b`."""
    runs = [run("a", seed, 10.0 * seed, 10.0 * seed, id=seed) for seed in seeds]
    result = sweep([RBF, LINEAR], [*runs, *seeded("b", 1.0)], name="tuesday", axes=["kernel"])
    return replace(result, id=2)


def shown(layout: Layout) -> dict[tuple[str, ...], list[int]]:
    """Header of each place → the seeds in it."""
    return {tuple(layout.header(at).values()): [seed.seed for seed in c.seeds] for at, c in layout.places.items()}


def test_a_cell_of_several_sweeps_appears_once_with_the_runs_of_all() -> None:
    both = joined([monday(0, 1), tuesday(1, 2)])
    assert [each.id for each in both.cells] == ["a", "a", "b"]
    assert [each.sweeps for each in both.cells] == [("monday", "tuesday"), ("monday", "tuesday"), ("tuesday",)]
    (layout,) = lay_out(both, [KERNELS])
    assert shown(layout) == {("rbf",): [0, 1, 2], ("linear",): [0]}
    assert (both.name, names(both)) == ("monday, tuesday", ("monday", "tuesday"))


def test_a_table_by_sweep_has_a_shared_cell_in_each_with_the_same_runs() -> None:
    (layout,) = lay_out(joined([monday(0, 1), tuesday(1, 2)]), [BY_SWEEP])
    assert shown(layout) == {("rbf", "monday"): [0, 1, 2], ("rbf", "tuesday"): [0, 1, 2], ("linear", "tuesday"): [0]}
    assert {c.id for c in layout.cells} == {"a", "b"}, "so that no test compares it with itself"


def test_one_sweep_may_be_chosen() -> None:
    both = joined([monday(0, 1), tuesday(1, 2)])
    (layout,) = lay_out(both, [TableSpec(name="t", rows=("kernel",), where={"sweep": "monday"})])
    assert shown(layout) == {("rbf",): [0, 1, 2]}
    with pytest.raises(KdxError, match=r"no cell where sweep = sunday\n  allowed: monday, tuesday"):
        lay_out(both, [TableSpec(name="t", rows=("kernel",), where={"sweep": "sunday"})])


def test_axes_of_all_sweeps_describe_a_shared_cell() -> None:
    named = cell("a", labels={"approach": "Eq. 4"}, kernel="rbf")
    (layout,) = lay_out(
        joined([monday(0), replace(sweep([named], [], name="tuesday"), id=2)]),
        [TableSpec(name="t", rows=("approach", "kernel"))],
    )
    assert layout.rows == (("Eq. 4", "rbf"),)


def test_a_cell_that_two_sweeps_call_differently_has_both_names() -> None:
    first, other = (cell("a", labels={"approach": name}, kernel="rbf") for name in ("Ours", "Theirs"))
    both = joined([sweep([first], [], name="monday"), replace(sweep([other], [], name="tuesday"), id=2)])
    (layout,) = lay_out(both, [TableSpec(name="t", rows=("approach",))])
    assert layout.rows == (("Ours",), ("Theirs",))


def test_different_cells_in_one_place_are_refused_with_their_sweeps() -> None:
    longer = cell("c", labels={"kernel": "rbf"}, kernel="rbf", training={"steps": 7})
    both = joined([monday(0), replace(sweep([longer], [], name="tuesday"), id=2)])
    with pytest.raises(KdxError) as caught:
        lay_out(both, [KERNELS])
    assert str(caught.value) == (
        "table `t`: 2 cells of the sweeps monday and tuesday fall into one place, kernel = rbf;"
        " they differ in training.steps\n  hint: add training.steps, or sweep, to rows or columns"
    )
    (layout,) = lay_out(both, [BY_SWEEP])
    assert layout.columns == (("monday",), ("tuesday",))


def test_without_tables_sweeps_have_columns_of_their_own_where_they_must() -> None:
    (merged,) = tables(joined([monday(0), tuesday(0)]))
    assert (merged.layout.name, merged.layout.column_factors) == ("monday, tuesday", ())
    longer = cell("c", labels={"kernel": "rbf"}, kernel="rbf", training={"steps": 7})
    (split,) = tables(joined([tuesday(0), replace(sweep([longer], [], name="third"), id=3)]))
    assert split.layout.column_factors == ("sweep",)


def test_the_notes_name_the_sweeps_of_the_cells() -> None:
    both = joined([monday(0, 1), tuesday(1, 2)])
    (table,) = tables(both)
    assert table.notes[-1] == "Cells are of the sweeps monday and tuesday."
    (alone,) = tables(joined([monday(0)]))
    assert not any("sweep" in note for note in alone.notes)


def test_an_axis_of_that_name_is_refused() -> None:
    own = sweep([cell("a", labels={"sweep": "x"})], [], name="monday")
    with pytest.raises(KdxError, match="sweep `monday` has an axis `sweep`"):
        joined([own, tuesday()])


def test_one_cell_on_two_axes_of_one_sweep_keeps_a_row_on_each() -> None:
    """As of two sub-grids, each with an axis of its own."""
    on_kernel, on_norm = (cell("a", labels=labels, kernel="rbf") for labels in ({"x": "1"}, {"y": "2"}))
    both = joined([sweep([on_kernel, on_norm], [], name="monday"), tuesday(0)])
    (layout,) = lay_out(both, [TableSpec(name="t", rows=("x", "y"), where={"sweep": "monday"})])
    assert layout.rows == (("1", "–"), ("–", "2"))
