"""Every contrast of every claim inside kdx is met by a shipped grid, at each scale that the paper's grids come in."""

from contextlib import suppress
from functools import cache

import pytest

from kdx.errors import KdxError
from kdx.grid.evaluations import resolve_evaluation
from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.shipped import names
from kdx.grid.table_layout import LayoutBuilder, evaluated
from kdx.report.papers.paper_file import Contrast, Rule, load_paper, shipped

EXTRAPOLATION = ("chi2022", "li2024", "press2022")
"""Papers on lengths beyond that of training; extrapolation/mini and extrapolation/small have the cells of each part."""
SCALES = {"paper": "", "small": "-small", "mini": "-mini"}


@cache
def specs(prefix: str, scale: str) -> list[ResolvedSpec]:
    """The cells of the grids that are so called, at this scale."""
    twins = tuple(suffix for suffix in SCALES.values() if suffix)
    grids = [name for name in names() if name.startswith(prefix)]
    values = [name for name in grids if (name.endswith(SCALES[scale]) if SCALES[scale] else not name.endswith(twins))]
    return [ResolvedSpec.of(cell.spec) for name in values for cell in load_grid(name).cells]


def contrasts(rule: Rule) -> list[Contrast]:
    return [each for part in rule.parts for each in (contrasts(part) if isinstance(part, Rule) else [part])]


GRIDS = [
    *((paper, f"{paper}/", scale) for paper in ("tsai2019", "shaw2018") for scale in SCALES),
    *(("tsai2019", "modern/tsai2019-", scale) for scale in ("paper", "mini")),
    ("arora2023", "recall/", "paper"),
    *((study, f"studies/{study}", "paper") for study in ("symmetry", "product", "kernel", "value", "layers")),
]


def test_every_paper_inside_kdx_has_grids():
    assert {*(paper for paper, _, _ in GRIDS), *EXTRAPOLATION} == set(shipped())


@pytest.mark.parametrize(("paper", "prefix", "scale"), GRIDS)
def test_both_sides_of_every_contrast_are_cells_of_a_shipped_grid(paper, prefix, scale):
    cells = specs(prefix, scale)
    for claim in load_paper(paper).claims:
        for contrast in contrasts(claim.holds):
            for side in (contrast.a, contrast.b):
                assert any(spec.matches({**contrast.where, **side}) for spec in cells), f"{claim.id}: {dict(side)}"


@pytest.mark.parametrize("paper", ["tsai2019", "shaw2018"])
def test_a_papers_table_has_the_cells_that_are_in_print_and_no_others(paper):
    for published in load_paper(paper).tables:
        plan = load_grid(f"{paper}/{published.table.lower().replace(' ', '')}")
        cells = [(cell.labels, ResolvedSpec.of(cell.spec)) for cell in plan.cells]
        placed = [cells[index][1] for table in plan.tables for index in LayoutBuilder(cells).build(table).at.values()]
        in_print = [{**published.where, **cell.where} for cell in published.cells]
        assert len(placed) == len(in_print)
        assert all(any(spec.matches(words) for words in in_print) for spec in placed)
        assert all(any(spec.matches(words) for spec in placed) for words in in_print)


@cache
def planned(grid: str) -> list[ResolvedSpec]:
    """The cells of a shipped grid, and the evaluations of them that can be made."""
    plan = load_grid(grid)
    result = [ResolvedSpec.of(cell.spec) for cell in plan.cells]
    for cell in plan.cells:
        for evaluation in plan.evaluations:
            # A table of learned positions ends before some lengths.
            with suppress(KdxError):
                result.append(
                    evaluated(cell.labels, ResolvedSpec.of(cell.spec), resolve_evaluation(cell.spec, evaluation))[1]
                )
    return result


@pytest.mark.parametrize("paper", shipped())
def test_the_grids_that_a_claim_names_test_it(paper):
    for claim in load_paper(paper).claims:
        cells = [spec for grid in claim.grids for spec in planned(grid)]
        both = [
            all(any(spec.matches({**contrast.where, **side}) for spec in cells) for side in (contrast.a, contrast.b))
            for contrast in contrasts(claim.holds)
        ]
        # extrapolation/mini trains at the shorter of the two lengths of each claim.
        assert any(both) if paper in EXTRAPOLATION else all(both), claim.id


def test_the_first_claim_asks_for_the_arms_of_table_1():
    """Table 1 has look-up on prediction with the position in the value (27.56)."""
    paper = load_paper("tsai2019")
    arms = {
        (contrast.where["task"], side["position"], side["value"])
        for contrast in contrasts(next(claim for claim in paper.claims if claim.id == "A1-product").holds)
        for side in (contrast.a, contrast.b)
    }
    table = next(each for each in paper.tables if each.table == "Table 1")
    assert arms == {(cell.where["task"], cell.where["position"], cell.where["value"]) for cell in table.cells}
    assert any(cell.value == 27.56 for cell in table.cells)


@pytest.mark.parametrize("paper", EXTRAPOLATION)
def test_both_sides_of_every_contrast_of_lengths_are_evaluations_of_a_shipped_grid(paper):
    claims = load_paper(paper).claims
    assert claims
    for claim in claims:
        trained = {each.where["training.length"] for each in contrasts(claim.holds)}
        assert trained == {"64", "512"}, claim.id
        for contrast in contrasts(claim.holds):
            for side in (contrast.a, contrast.b):
                words = {**contrast.where, **side}
                assert "evaluation.length" in words
                grids = ("extrapolation/mini", "extrapolation/small")
                assert any(spec.matches(words) for grid in grids for spec in planned(grid)), f"{claim.id}: {words}"
