"""What `kdx plan` shows: many runs summed up, what cells cost, and what does not fit."""

from dataclasses import replace

import pytest
from grids import TINY

from kdx.cli.budget import what_is_left_out
from kdx.cli.plan_view import MOST_LINES, PlanView
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.sweep.budget import Budget
from kdx.sweep.covered import Covered
from kdx.sweep.decide import Action
from kdx.sweep.forecast import Basis, Forecast
from kdx.sweep.plan_forecast import PlanForecast, RunStatus, forecast_plan


@pytest.fixture
def plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 30} + "axes: {kernel: [exponential, rbf]}\n")
    return load_grid(grid)


def lines(plan: Plan, forecast: PlanForecast, *, every: bool) -> list[str]:
    return list(PlanView(plan, forecast, None, 1, 1, None).lines(every=every))


def costs(plan: Plan, forecast: PlanForecast, *hardware: int | None) -> list[str]:
    return list(PlanView(plan, forecast, None, *hardware).notes())


def known(forecast: PlanForecast, cells: int = 2) -> PlanForecast:
    costs = [Forecast(100.0, 2 * 10**9, 1_000_000, Basis.CELL, 1), Forecast(7200.0, None, None, Basis.SIZE, 3)]
    return forecast.with_forecasts(dict(list(zip(forecast.cells, costs, strict=True))[:cells]))


def test_few_runs_have_a_line_each_and_many_are_summed_up(plan):
    forecast = forecast_plan(None, plan)
    assert len(list(lines(plan, forecast, every=True))) == 60 > MOST_LINES
    assert list(lines(plan, forecast, every=False)) == ["       runs  why", "start    60  new"]
    few = replace(forecast, runs=forecast.runs[:3])
    assert [line.split()[0] for line in lines(plan, few, every=False)] == ["start"] * 3


def test_runs_are_summed_up_by_what_happens_to_them_not_by_their_numbers(plan):
    forecast = forecast_plan(None, plan)
    stale = replace(forecast.runs[0], status=RunStatus.STALE, changed=("a", "b", "c", "d"))
    waits = [
        replace(each.decision, reason=f"from step {step}: interrupted at step 1{step}")
        for step, each in enumerate(forecast.runs[1:30])
    ]
    runs = (
        stale,
        *(replace(each, decision=decision) for each, decision in zip(forecast.runs[1:30], waits, strict=True)),
    )
    shown = list(lines(plan, replace(forecast, runs=(*runs, *forecast.runs[30:])), every=False))
    assert [" ".join(line.split()) for line in shown] == [
        "runs why",
        "start 1 new; stale: a, b, 2 more modules changed since",
        "start 29 from step …: interrupted at step …",
        "start 30 new",
    ]


def test_a_run_shows_how_many_of_its_evaluations_are_stale(tmp_path):
    grid = tmp_path / "evaluated.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 1} + "evaluations: {wide: {beam: [2, 3]}}\n")
    plan = load_grid(grid)
    forecast = forecast_plan(None, plan)
    first, second = plan.evaluations_of(plan.cells[0].id)
    stale = {first.id: ("kdx.models.beam", "kdx.training.evaluation"), second.id: ("kdx.models.beam",)}
    shown = list(
        lines(plan, replace(forecast, runs=(replace(forecast.runs[0], changed_evaluations=stale),)), every=True)
    )
    assert shown[0].endswith("(new; 2 evaluations stale: kdx.models.beam, kdx.training.evaluation changed since)")


def test_cells_show_what_a_run_of_them_costs_and_from_what_that_is_known(plan):
    first, second = plan.cells
    shown = [" ".join(line.split()) for line in lines(plan, known(forecast_plan(None, plan)), every=False)][2:]
    assert shown == [
        "",
        "cell to train time of a run parameters memory from",
        f"{first.id[:8]} exponential 30 2 min 1,000,000 2.0 GB 1 run of this cell",
        f"{second.id[:8]} rbf 30 2 h – – 3 runs of the same sizes",
    ]
    assert "unknown" in list(lines(plan, known(forecast_plan(None, plan), 1), every=False))[-1]


def test_costs_are_time_and_memory(plan):
    forecast = replace(known(forecast_plan(None, plan)), errors=(0.1, 0.3))
    time, memory = costs(plan, forecast, 2, 2, 3 * 10**9)
    assert time.startswith("time: 61 h of computing, 30 h with 2 runs at a time, done about ")
    assert time.endswith("; forecasts were off by 20% for the last 2 runs (median; at most 30%)")
    assert memory.startswith("memory: 4.0 GB with 2 runs at a time, but there are 3.0 GB here")
    assert [line.partition(":")[0] for line in costs(plan, forecast, 1, 1, 3 * 10**9)] == ["time"]


def test_evaluations_are_in_no_time_and_the_note_says_so(tmp_path):
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 2} + "evaluations: {wide: {beam: [2, 3]}}\n")
    plan = load_grid(grid)
    forecast = forecast_plan(None, plan)
    (cell,) = forecast.cells
    known = Forecast(100.0, None, None, Basis.CELL, 1)
    (time,) = costs(plan, forecast.with_forecasts({cell: known}), 1, 1, None)
    assert time.endswith("; 4 evaluations are not in it, for their time is recorded nowhere")
    assert list(costs(plan, forecast, 1, 1, None)) == []
    evaluates = [
        replace(each, decision=replace(each.decision, action=Action.EVALUATE, missing=each.decision.missing[:1]))
        for each in forecast.runs
    ]
    (time,) = costs(plan, replace(forecast, runs=tuple(evaluates)), 1, 1, None)
    assert time == "time: unknown; 2 evaluations to make, whose time is recorded nowhere"


def test_what_nobody_knows_is_not_in_the_time(plan):
    (time,) = costs(plan, known(forecast_plan(None, plan), 1), 1, 1, None)
    assert time.endswith("; 1 of 2 cells are not in it, for no like run has completed: see --probe")
    assert list(costs(plan, forecast_plan(None, plan), 1, 1, None)) == []


SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})
PLAN = Plan("plan", tuple(PlannedCell(f"c{at}", at, {"kernel": f"k{at}"}, SPEC) for at in range(6)), (0, 1, 2, 3, 5))
SIX_HOURS = Budget("6h", 21600.0, 21600.0)


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
