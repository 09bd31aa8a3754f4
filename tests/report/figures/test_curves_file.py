"""Curves as a file of each format."""

from array import array

import pytest

from kdx.report.figures.curves import NamedCurve
from kdx.report.figures.curves_file import FORMATS, figure
from kdx.store.records import CurveRecord


def curve(name: str, **points: float) -> NamedCurve:
    return NamedCurve(name, CurveRecord(array("q", range(len(points))), array("d", points.values())))


CURVES = {
    "train/loss": [curve("run 1", a=3.0, b=2.0), curve("run 2", a=4.0, b=float("nan"), c=1.0)],
    "valid/bleu": [curve("run 1", a=30.0)],
}


@pytest.mark.parametrize(("suffix", "start"), [*zip(FORMATS, (b"<svg", b"\x89PNG\r\n", b"%PDF-"), strict=True)])
def test_each_format_is_what_it_is_called(suffix, start):
    assert figure(CURVES, suffix).startswith(start)


def test_the_svg_names_metrics_and_curves_and_draws_each():
    svg = figure(CURVES, ".svg").decode()
    assert all(f">{word}<" in svg for word in ("train/loss", "valid/bleu", "run 1", "run 2", "step"))
    assert svg.count('aria-roledescription="line mark"') == 3


def test_a_name_is_text_and_no_markup():
    svg = figure({"x": [curve("<script>alert(1)</script>", a=1.0), curve("two", a=2.0)]}, ".svg").decode()
    assert "<script" not in svg
