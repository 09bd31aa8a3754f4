"""Charts as text: what is drawn, what it links to, and that nothing leads out of the page."""

import html
import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from sweeps import cell, run, sweep

from kdx.report.figures.charts import AttentionMap, Mark, dots, forest, mapped, plotted, scatter
from kdx.report.figures.plot import Plot, Point, Series
from kdx.report.tables import tables
from kdx.report.writers.html import figures
from kdx.report.writers.html.learning import _seeds_together
from kdx.store.records import CurveRecord

HOSTILE = '</script><b> & "q" \' \x1b \u202e javascript:alert(1)'

BAND = Series("cell", (Point(0.0, 1.5, 1.0, 2.0), Point(50.0, None, 0.5, 0.7), Point(100.0, 0.3, 0.2, 0.4)))
CURVE = Plot("valid/loss ↓", "step", "", (BAND,), dots=((100.0, 0.3),))


def marks(number: int, label: str = "cell") -> list[Mark]:
    return [
        Mark(f"{label} {i}: +{i}", f"#run-{i}", i % 4 == 0, i, i + 1.0, i - 0.5, i + 0.5, f"{label} {i}")
        for i in range(number)
    ]


def links(svg: str) -> list[str]:
    ElementTree.fromstring(svg)
    assert "http" not in svg.replace("http://www.w3.org/", "")
    return re.findall(r'href="([^"]*)"', svg)


def test_a_curve_has_its_band_its_line_and_the_tested_step() -> None:
    svg = plotted(CURVE)
    assert links(svg) == []
    assert "valid/loss ↓" in svg
    assert svg.count("mark-area") == 1 and svg.count("mark-line") == 1
    single = Series("cell", (Point(5.0, 1.0, 1.0, 1.0),))
    assert "mark-area" not in plotted(Plot("t", "step", "", (single,)))


def test_an_axis_over_three_decades_is_logarithmic() -> None:
    assert "log scale" in plotted(replace(CURVE, y_span=(0.2, 2000.0)))
    assert "log scale" not in plotted(replace(CURVE, y_span=(0.0, 2000.0)))
    assert "log scale" not in plotted(replace(CURVE, y_span=(0.2, 20.0)))


def test_every_point_is_a_link_within_the_page() -> None:
    assert sorted(links(scatter(marks(9), "x", "y"))) == sorted(f"#run-{i}" for i in range(9))
    assert links(forest(marks(9), "better by")) == [f"#run-{i}" for i in range(9)]
    cells, runs = marks(9), [mark for mark in marks(9) if mark.filled]
    assert sorted(links(dots(cells, runs, "bleu"))) == sorted(
        [f"#run-{i}" for i in range(9)] + ["#run-0", "#run-4", "#run-8"]
    )


def test_of_many_seeds_a_scatter_draws_some(monkeypatch) -> None:
    monkeypatch.setattr(figures, "_MOST_POINTS", 4)
    drawn: list[Sequence[Mark]] = []
    monkeypatch.setattr(figures, "scatter", lambda marks, *titles: drawn.append(marks) or "")
    cells = [cell(kernel, kernel=kernel) for kernel in ("exponential", "rbf")]
    of_few, of_many = (
        [run(each.id, seed, seed, seed, id=100 * of + seed) for of, each in enumerate(cells) for seed in range(n)]
        for n in (2, 12)
    )
    captions = []
    for runs in (of_few, of_many):
        (table,) = tables(sweep(cells, runs))
        captions += [
            figure["caption"]
            for figure in figures.figures(table, sweep(cells, runs))
            if "one point per seed" in figure["caption"]
        ]
    assert [(len(marks), sum(mark.filled for mark in marks)) for marks in drawn] == [(4, 2), (4 + 2, 2)]
    assert ["some stand for all" in caption for caption in captions] == [False, True]


def test_groups_differ_by_colour_and_by_shape_and_a_legend_names_them() -> None:
    in_groups = [replace(mark, group=f"approach {number % 9}") for number, mark in enumerate(marks(90))]
    svg = scatter(in_groups, "x", "y")
    assert re.findall(r">(approach \d)<", svg) == [f"approach {number}" for number in range(9)]
    drawn = re.findall(
        r'<a href="#run-(\d+)"[^>]*><path [^>]*d="(\S+?)"[^>]*?(?:fill|stroke)="(var\(--series-\d\))"',
        svg,
    )
    assert len(drawn) == 90
    # The filled ones are larger, so only their own shapes compare.
    looks = {(int(run) % 9, shape, colour) for run, shape, colour in drawn if int(run) % 4}
    assert len(looks) == 9 == len({look[1:] for look in looks})
    alike = [replace(mark, group="") for mark in marks(9)]
    assert not re.findall(r">approach \d<", scatter(alike, "x", "y")), "one group needs no legend"


def test_rows_of_the_forest_keep_their_order_and_are_filled_where_told_apart() -> None:
    svg = forest(marks(3), "better by (bleu)")
    assert re.findall(r">(cell \d)<", svg) == ["cell 0", "cell 1", "cell 2"]
    assert svg.count('fill="var(--accent)"') == 1 and svg.count('fill="var(--paper)"') == 2
    assert 'aria-label="cell 2: +2"' in svg, "what the page shows of a point under the pointer"


def test_a_forest_has_a_bar_at_each_margin() -> None:
    plain, equivalent = (forest([replace(mark, at=at) for mark in marks(3)], "a") for at in ((), (-9.0, 9.0)))
    assert equivalent.count("mark-rect") - plain.count("mark-rect") == 1
    assert "−5" in equivalent and "−5" not in plain, "the axis reaches as far as the margins"


def test_a_table_as_a_picture_has_every_seed_and_fills_the_best_mean() -> None:
    cells = [cell(kernel, kernel=kernel) for kernel in ("exponential", "rbf")]
    runs = [
        run(each.id, seed, seed, 10.0 * of + seed, id=10 * of + seed)
        for of, each in enumerate(cells)
        for seed in range(3)
    ]
    (table,) = tables(record := sweep(cells, runs))
    first = next(figures.figures(table, record))
    (svg,) = first["svgs"]
    assert [f"exponential, seed {seed}: {seed}.00" in svg for seed in range(3)] == [True] * 3
    assert svg.count('fill="var(--accent)"') == 1 and "exponential: mean 1.00, 95% interval " in svg
    assert "interval over seeds; cells are compared" in first["caption"], "no test text is known of these runs"
    assert "best of each task" not in first["caption"]


def test_of_a_large_table_the_picture_has_the_best_cells(monkeypatch) -> None:
    monkeypatch.setattr(figures, "_MOST_ROWS", 2)
    cells = [cell(kernel, kernel=kernel) for kernel in ("exponential", "rbf", "linear")]
    runs = [
        run(each.id, seed, seed, 10.0 * of + seed, id=10 * of + seed)
        for of, each in enumerate(cells)
        for seed in (0, 1)
    ]
    (table,) = tables(record := sweep(cells, runs))
    first = next(figures.figures(table, record))
    assert first["caption"].endswith(" The 2 best of each task.")
    assert ">rbf<" in first["svgs"][0] and ">linear<" in first["svgs"][0] and ">exponential<" not in first["svgs"][0]


def test_ratios_run_to_the_left_with_ticks_that_leave_room_for_their_labels() -> None:
    ratios = [Mark("", "#x", False, 1.0 + i / 20, low=0.98, high=1.18, group=f"cell {i}") for i in range(3)]
    svg = forest(ratios, "perplexity, times that of the other cell", zero=1.0)
    ticks = re.findall(r'<text [^>]*transform="translate\(([\d.]+),[^>]*>([01]\.?\d*)</text>', svg)
    at = {float(tick): float(x) for x, tick in ticks}
    assert 1.0 in at and 3 <= len(at) <= 6
    assert sorted(at, reverse=True) == sorted(at, key=lambda tick: at[tick])
    differences = forest([replace(mark, x=mark.x - 1, low=-0.19, high=0.02) for mark in ratios], "better by (bleu)")
    assert 3 <= len(re.findall(r">−?0(?:\.\d+)?</text>", differences)) <= 8


def test_a_map_has_a_square_for_each_pair_and_the_words_of_both_sides() -> None:
    words = ("the", HOSTILE, "the", '\\"]')
    drawn = AttentionMap("encoder", words, words, [[[0.25] * 4] * 4] * 2)
    svg = mapped(drawn)
    links(svg)
    assert svg.count('opacity="0.25"') == 2 * 4 * 4
    assert svg.count(">the<") == 2 + 2 * 2, "rows of the first head, columns of both"
    assert "<b>" not in svg and "\u202e" not in svg and "\x1b" not in svg
    assert '>\\"]<' in html.unescape(svg) or ">\\&quot;]<" in svg


def test_hostile_names_stay_text() -> None:
    for svg in (
        forest(marks(2, HOSTILE), HOSTILE),
        scatter(marks(2, HOSTILE), HOSTILE, HOSTILE),
        plotted(Plot(HOSTILE, HOSTILE, HOSTILE, (replace(BAND, name=HOSTILE), BAND))),
    ):
        links(svg)
        assert "<b>" not in svg and "</script" not in svg and "\u202e" not in svg and "\x1b" not in svg


def together(curves: list[CurveRecord], most: int, selected: int | None = 0) -> tuple[Point, ...]:
    seeds = [SimpleNamespace(run_id=number, invalidated=None) for number in range(len(curves))]
    cell: Any = SimpleNamespace(run_id=selected, seeds=seeds)
    return _seeds_together(cell, "loss", {number: {"loss": curve} for number, curve in enumerate(curves)}, most)


def curve(*points: tuple[int, float]) -> CurveRecord:
    return CurveRecord(array("q", [step for step, _ in points]), array("d", [value for _, value in points]))


def test_the_range_of_seeds_is_around_the_selected_one() -> None:
    first, two = curve((1, 5.0), (10, 3.0), (20, 4.0)), curve((1, 6.0), (10, 2.0), (11, nan), (12, inf))
    assert together([first, two], 9) == (Point(1, 5.0, 5.0, 6.0), Point(10, 3.0, 2.0, 3.0), Point(20, 4.0, 4.0, 4.0))
    assert [point.y for point in together([first, two], 9, None)] == [5.0, 3.0, 4.0], "the first while none is selected"
    assert together([curve((1, nan))], 9) == () == together([], 9)


curves_of_seeds = st.lists(
    st.tuples(st.integers(0, 10_000), st.floats(allow_nan=True)), max_size=60, unique_by=lambda point: point[0]
).map(lambda points: curve(*sorted(points)))


@given(st.lists(curves_of_seeds, min_size=1, max_size=4), st.integers(1, 12))
def test_thinning_loses_no_extreme_and_makes_no_value_up(curves: list[CurveRecord], most: int) -> None:
    finite = [value for curve in curves for value in curve.values if abs(value) < inf]
    points = together(curves, most)
    assert bool(points) is bool(finite) and len(points) <= most
    if finite:
        assert (min(point.low for point in points), max(point.high for point in points)) == (min(finite), max(finite))
        assert {value for point in points for value in (point.low, point.high)} <= set(finite)
        assert {point.y for point in points} - {None} <= set(curves[0].values)
        assert [point.x for point in points] == sorted({point.x for point in points})
