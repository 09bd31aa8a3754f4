"""A plot as a file of each format."""

import math
from array import array

import pytest

from kdx.report.figures.plot import NamedCurve, Plot, Point, Series, curves_plot
from kdx.report.figures.vega import FORMATS, figure
from kdx.store.records import CurveRecord


def curve(name: str, points: dict[int, float]) -> NamedCurve:
    return NamedCurve(name, CurveRecord(array("q", points), array("d", points.values())))


CURVES = [
    curves_plot("train/loss", [curve("run 1", {0: 3.0, 1: 2.0}), curve("run 2", {0: 4.0, 1: math.nan, 2: 1.0})]),
    curves_plot("valid/bleu", [curve("run 1", {0: 30.0})]),
]


@pytest.mark.parametrize(("suffix", "start"), [*zip(FORMATS, (b"<svg", b"\x89PNG\r\n", b"%PDF-"), strict=True)])
def test_each_format_is_what_it_is_called(suffix, start):
    assert figure(CURVES, suffix).startswith(start)


def test_the_svg_names_metrics_and_curves_and_draws_each():
    svg = figure(CURVES, ".svg").decode()
    assert all(f">{word}<" in svg for word in ("train/loss", "valid/bleu", "run 1", "run 2", "step"))
    assert svg.count('aria-roledescription="line mark"') == 3


def test_a_name_is_no_markup():
    named = Plot(
        "<script>", "x", "y", (Series("<script>alert(1)</script>", (Point(1.0, 1.0, 0.5, 2.0),)), Series("b", ()))
    )
    assert "<script" not in figure([named], ".svg").decode()
