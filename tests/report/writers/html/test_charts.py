"""Plots as text: what is drawn, what it links to, and that nothing leads out of the page."""

import random
import re
from dataclasses import replace
from math import log10
from xml.etree import ElementTree

from kdx.report.writers.html.charts import Point, forest, learning_curve, overlay, scatter
from kdx.report.writers.html.curves import Band

HOSTILE = '</script><b> & "q" \' \x1b \u202e javascript:alert(1)'

SCALE = r"-axis [^\"]*?for a (\w+ scale with values from [^'\"]*)"

BAND = Band((0.0, 50.0, 100.0), (1.0, 0.5, 0.2), (2.0, 0.7, 0.4), ((0.0, 1.5), (100.0, 0.3)), 3)


def points(number: int, label: str = "cell") -> list[Point]:
    return [Point(f"{label} {i}", f"#run-{i}", i % 4 == 0, i, i + 1.0, i - 0.5, i + 0.5) for i in range(number)]


def links(svg: str) -> list[str]:
    ElementTree.fromstring(svg)
    assert "http" not in svg.replace("http://www.w3.org/", "")
    return re.findall(r'href="([^"]*)"', svg)


def test_a_curve_has_its_band_its_line_and_the_tested_step() -> None:
    svg = learning_curve(BAND, "valid/loss ↓", (0.2, 2.0), (0.0, 100.0), (100.0, 0.3))
    assert links(svg) == []
    assert "valid/loss ↓" in svg
    assert svg.count('fill="var(--band)"') == 1
    assert svg.count('stroke="var(--accent)"') == 1 and svg.count('fill="var(--accent)"') == 1


def test_one_seed_alone_has_no_band() -> None:
    alone = Band(BAND.steps, BAND.low, BAND.high, BAND.line, 1)
    assert "var(--band)" not in learning_curve(alone, "t", (0.2, 2.0), (0.0, 100.0), None)


def test_an_axis_over_three_decades_is_logarithmic() -> None:
    assert "log scale" in learning_curve(BAND, "t", (0.2, 2000.0), (0.0, 100.0), None)
    assert "log scale" not in learning_curve(BAND, "t", (0.0, 2000.0), (0.0, 100.0), None)
    assert "log scale" not in learning_curve(BAND, "t", (0.2, 20.0), (0.0, 100.0), None)


def test_a_single_value_still_has_an_axis() -> None:
    flat = Band((5.0,), (1.0,), (1.0,), ((5.0, 1.0),), 2)
    ElementTree.fromstring(learning_curve(flat, "t", (1.0, 1.0), (5.0, 5.0), (5.0, 1.0)))
    assert len(links(scatter(points(1), "x", "y"))) == 1


def test_every_point_is_a_link_within_the_page() -> None:
    assert sorted(links(scatter(points(9), "x", "y"))) == sorted(f"#run-{i}" for i in range(9))
    assert links(forest(points(9), "better by")) == [f"#run-{i}" for i in range(9)]


def test_of_very_many_points_only_the_selected_ones_are_links() -> None:
    svg = scatter(points(2400), "x", "y")
    assert links(svg) == [f"#run-{i}" for i in range(0, 2400, 4)]
    assert len(svg) < 2400 * 250


def test_of_very_many_points_one_stands_for_those_on_its_spot() -> None:
    rng = random.Random(0)
    many = [replace(one, x=rng.uniform(1, 2), y=10 ** rng.uniform(0, 6)) for one in points(20_000)]
    svg = scatter(many, "x", "y")
    assert svg.count("<path") < 5000 + 5000
    drawn = re.findall(r'<path transform="translate\(([\d.]+),([\d.]+)\)"', svg)
    spots = {(int(float(x)) // 8, int(float(y)) // 8) for x, y in drawn}
    for one in many[::97]:
        # The axes run from 1 to 2 over 300 pixels and over six decades in 260.
        x, y = 300 * (one.x - 1), 260 * (1 - log10(one.y) / 6)
        assert spots & {(int(x + dx) // 8, int(y + dy) // 8) for dx in (-5, 5) for dy in (-5, 5)}


def test_groups_differ_by_colour_and_by_shape_and_a_legend_names_them() -> None:
    its = [replace(one, group=f"approach {number % 9}") for number, one in enumerate(points(90))]
    svg = scatter(its, "x", "y")
    assert re.findall(r">(approach \d)<", svg) == [f"approach {number}" for number in range(9)]
    marks = re.findall(
        r'<a href="#run-(\d+)"[^>]*><path [^>]*d="(\S+?)"[^>]*?(?:fill|stroke)="(var\(--series-\d\))"', svg
    )
    assert len(marks) == 90
    # The filled ones are larger, so only their own shapes compare.
    looks = {(int(run) % 9, shape, colour) for run, shape, colour in marks if int(run) % 4}
    assert len(looks) == 9 == len({look[1:] for look in looks})
    assert not re.findall(r">approach \d<", scatter(points(9), "x", "y")), "one group needs no legend"


def test_the_axes_of_an_overlay_are_those_of_the_curves() -> None:
    for span in ((0.2, 2.0), (0.2, 2000.0), (1.0, 1.0)):
        small, large = learning_curve(BAND, "t", span, (0.0, 100.0), None), overlay("t", span, (0.0, 100.0))
        links(large)
        scales = [set(re.findall(SCALE, svg)) for svg in (small, large)]
        assert scales[0] == scales[1] and len(scales[0]) == 2


def test_rows_of_the_forest_keep_their_order_and_are_filled_where_told_apart() -> None:
    svg = forest(points(3), "better by (bleu)")
    assert re.findall(r">(cell \d)<", svg) == ["cell 0", "cell 1", "cell 2"]
    assert svg.count('fill="var(--accent)"') == 1 and svg.count('fill="var(--paper)"') == 2


def test_ratios_run_to_the_left_with_ticks_that_leave_room_for_their_labels() -> None:
    its = [Point(f"cell {i}", "#x", False, 1.0 + i / 20, low=0.98, high=1.18) for i in range(3)]
    svg = forest(its, "perplexity, times that of the other cell", ratios=True)
    ticks = re.findall(r'<text [^>]*transform="translate\(([\d.]+),[^>]*>([01]\.?\d*)</text>', svg)
    at = {float(tick): float(x) for x, tick in ticks}
    assert 1.0 in at and 3 <= len(at) <= 6
    assert sorted(at, reverse=True) == sorted(at, key=lambda tick: at[tick])
    differences = forest([replace(one, x=one.x - 1, low=-0.19, high=0.02) for one in its], "better by (bleu)")
    assert 3 <= len(re.findall(r">−?0(?:\.\d+)?</text>", differences)) <= 8


def test_hostile_names_stay_text() -> None:
    for svg in (
        forest(points(2, HOSTILE), HOSTILE),
        scatter(points(2, HOSTILE), HOSTILE, HOSTILE),
        learning_curve(BAND, HOSTILE, (0.2, 2.0), (0.0, 100.0), None),
    ):
        links(svg)
        assert "<b>" not in svg and "</script" not in svg and "\u202e" not in svg and "\x1b" not in svg
