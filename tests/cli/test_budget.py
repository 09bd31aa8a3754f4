"""What a budget is enough for, and what it leaves out."""

import pytest

from kdx.cli.budget import what_is_left_out
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.sweep.budget import Covered, read_budget

SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})
PLAN = Plan("plan", tuple(PlannedCell(f"c{at}", at, {"kernel": f"k{at}"}, SPEC) for at in range(6)), (0, 1, 2, 3, 5))
SIX_HOURS = read_budget("6h", 0.0)


def left_out(gone: set[tuple[str, int]]) -> str | None:
    runs = tuple(run for run in PLAN.runs if (run.cell.id, run.seed) in gone)
    return what_is_left_out(SIX_HOURS, Covered(PLAN.runs, runs, 3600.0), PLAN)


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        (
            {(f"c{at}", seed) for at in range(6) for seed in (2, 3, 5)},
            "12 of 30 runs to do; left out: seeds 2, 3, 5 of all cells",
        ),
        (
            {(f"c{at}", seed) for at in range(6) for seed in (1, 2, 3)},
            "12 of 30 runs to do; left out: seeds 1–3 of all cells",
        ),
        ({("c0", 5)}, "29 of 30 runs to do; left out: seed 5 of 1 cell (k0)"),
        (
            {(f"c{at}", seed) for at in range(5) for seed in (3, 5)} | {("c5", seed) for seed in PLAN.seeds},
            "15 of 30 runs to do; left out: seeds 3, 5 of 5 cells; 1 cell not at all (k5)",
        ),
        ({(run.cell.id, run.seed) for run in PLAN.runs}, "none of the 30 runs to do"),
    ],
)
def test_what_a_budget_leaves_out_is_summed_up(gone, what):
    assert left_out(gone) == f"the budget of 6h is enough for {what}"


def test_a_budget_may_be_enough_or_unknown():
    assert left_out(set()) == "the budget of 6h is enough for all 30 runs to do: about 60 min"
    enough = what_is_left_out(SIX_HOURS, Covered(PLAN.runs[:1], (), 50.0), PLAN)
    assert enough == "the budget of 6h is enough for the one run to do: about 50 s"
    with_evaluation = what_is_left_out(SIX_HOURS, Covered(PLAN.runs[:1], (), 50.0, evaluations=1), PLAN)
    assert with_evaluation == f"{enough}; 1 evaluation is not in it, for its time is recorded nowhere"
    assert what_is_left_out(SIX_HOURS, Covered((), (), 0.0), PLAN) is None
    for unknown, like in ((PLAN.cells, ""), (PLAN.cells[:2], " like those of 2 cells")):
        line = what_is_left_out(SIX_HOURS, Covered(PLAN.runs, None, None, unknown), PLAN)
        assert line == f"no run{like} has finished yet, so it is unknown what the budget of 6h leaves out"
