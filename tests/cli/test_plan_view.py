"""What `kdx plan` shows: many runs summed up, what cells cost, and what does not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
from grids import TINY

from kdx.cli.plan_view import MOST_ROWS, PlanView
from kdx.cli.planned import what_is_left_out
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec
from kdx.sweep.budget import Budget
from kdx.sweep.covered import Covered
from kdx.sweep.decide import Action
from kdx.sweep.forecast import Basis, Forecast
from kdx.sweep.plan_forecast import PlanForecast, PlannedDecision, RunStatus, forecast_plan


@pytest.fixture
def plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 30} + "axes: {kernel: [exponential, rbf]}\n")
    return load_grid(grid)


def lines(plan: Plan, forecast: PlanForecast, *, every: bool) -> list[str]:
    return list(PlanView(plan, forecast, None, 1, 1, None).lines(every=every))


def cost(plan: Plan, forecast: PlanForecast, *hardware: int | None) -> str | None:
    return PlanView(plan, forecast, None, *hardware).cost_line()


def known(forecast: PlanForecast, cells: int = 2) -> PlanForecast:
    costs = [Forecast(100.0, 2 * 10**9, 1_000_000, Basis.CELL, 1), Forecast(7200.0, None, None, Basis.SIZE, 3)]
    return forecast.with_forecasts(dict(list(zip(forecast.cells, costs, strict=True))[:cells]))


def loaded(folder: Path, text: str, seeds: int = 2) -> Plan:
    (folder / "grid.yaml").write_text(TINY % {"steps": 10, "seeds": seeds} + text)
    return load_grid(str(folder / "grid.yaml"))


def rows(shown: list[str]) -> list[list[str]]:
    """The words of each row of the picture, between its rules."""
    first, _, last = (at for at, line in enumerate(shown) if line.startswith("─"))
    return [line.split() for line in shown[first + 1 : last] if not line.startswith("─")]


def test_a_plan_is_a_picture_with_a_row_for_each_approach_and_a_sign_for_each_seed(tmp_path):
    approaches = "approaches: {none: {position: none}, product: {position: product}}\n"
    plan = loaded(tmp_path, "axes: {kernel: [exponential, rbf]}\n" + approaches)
    shown = lines(plan, forecast_plan(None, plan), every=False)
    assert shown[0] == "tiny: 4 cells × seeds 0, 1"
    assert rows(shown) == [
        ["approach", "exponential", "rbf"],
        ["none", "○○", "○○"],
        ["product", "○○", "○○"],
    ]
    assert shown[-2:] == [
        "○ to train",
        "8 runs to train; time: unknown, since no similar run has completed; --probe measures it",
    ]


def test_each_run_has_a_line_where_that_is_asked(plan):
    assert len(lines(plan, forecast_plan(None, plan), every=True)) == 60 + 1


def test_many_seeds_are_counted(plan):
    assert rows(lines(plan, forecast_plan(None, plan), every=False))[1:] == [["exponential", "30○"], ["rbf", "30○"]]


def test_a_large_plan_is_shown_in_part_and_says_which(tmp_path):
    plan = loaded(tmp_path, "axes: {training.warmup: {from: 1, to: 1000, linear: 1000}}\n")
    shown = lines(plan, forecast_plan(None, plan), every=False)
    assert len(rows(shown)) == MOST_ROWS + 1
    rest = " ".join(shown[-4:-2]).lstrip("─ ")
    assert rest == f"… and {1000 - MOST_ROWS} more rows, from {MOST_ROWS + 1} to 1000; --all lists their runs"
    assert shown[-2] == "○ to train" and shown[-1].startswith("2,000 runs to train")


def test_choices_are_rows_too_while_there_would_be_too_many_columns(tmp_path):
    axes = "axes: {kernel: [exponential, rbf], training.warmup: [1, 2, 3, 4, 5], model.inner: [8, 16, 24]}\n"
    plan = loaded(tmp_path, axes, seeds=1)
    head, first, second, *_ = rows(lines(plan, forecast_plan(None, plan), every=False))
    assert head == ["kernel", "training.warmup", "inner", "8", "inner", "16", "inner", "24"]
    assert (first, second) == (["exponential", "1", "○", "○", "○"], ["2", "○", "○", "○"]), "names are not repeated"


def test_every_state_has_a_sign_and_what_the_signs_do_not_tell_is_counted_by_its_reason(plan):
    plan = replace(plan, seeds=(0, 1, 2, 3, 4))
    new = forecast_plan(None, plan)

    def planned(at: int, status: RunStatus, action: Action, reason: str, **more) -> PlannedDecision:
        return replace(
            new.runs[at], status=status, decision=replace(new.runs[at].decision, action=action, reason=reason), **more
        )

    runs = [
        planned(0, RunStatus.STALE, Action.SKIP, "completed, validation score 1.00", changed=("a", "b", "c", "d")),
        planned(1, RunStatus.STALE, Action.SKIP, "completed, validation score 2.00", changed=("a", "b", "c", "d")),
        planned(2, RunStatus.CONTINUED, Action.CONTINUE, "from its checkpoint at step 5: interrupted at step 7"),
        planned(3, RunStatus.CONTINUED, Action.START, "starts again: interrupted at step 7, but no checkpoint is left"),
        planned(4, RunStatus.FAILED, Action.SKIP, "failed: ValueError: no"),
        planned(5, RunStatus.RUNNING, Action.WAIT, "running in another kdx"),
        planned(6, RunStatus.OPEN, Action.WAIT, "if the comparison is still open after 3 seeds"),
        planned(7, RunStatus.NOT_NEEDED, Action.SKIP, "decided after 3 seeds"),
        *new.runs[8:],
    ]
    shown = lines(plan, replace(new, runs=tuple(runs)), every=False)
    assert rows(shown)[1:] == [["exponential", "!◐✗?○"], ["rbf", "!○▶·○"]]
    last_rule = max(at for at, line in enumerate(shown) if line.startswith("─"))
    legend, reasons = " ".join(shown[last_rule + 1 : -8]), shown[-8:-1]
    assert legend == (
        "○ to train, ◐ to resume, ! done, but its code changed since, ▶ running in another kdx, ✗ failed, "
        "? to train if comparisons stay open, · not needed"
    )
    assert reasons == [
        "2 runs to skip: completed, validation score …; stale: a, b, 2 more modules changed since",
        "1 run to continue: from its checkpoint at step 5: interrupted at step 7",
        "1 run to start: starts again: interrupted at step 7, but no checkpoint is left",
        "1 run to skip: failed: ValueError: no",
        "1 run to wait: running in another kdx",
        "1 run to wait: if the comparison is still open after 3 seeds",
        "1 run to skip: decided after 3 seeds",
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
    shown = [" ".join(line.split()) for line in lines(plan, known(forecast_plan(None, plan)), every=True)][60:-1]
    assert shown == [
        "",
        "cell to train time of a run parameters memory from",
        f"{first.id[:8]} exponential 30 2 min 1,000,000 2.0 GB 1 run of this cell",
        f"{second.id[:8]} rbf 30 2 h – – 3 runs of the same sizes",
    ]
    assert "unknown" in lines(plan, known(forecast_plan(None, plan), 1), every=True)[-2]


def test_costs_are_time_disk_and_memory(plan):
    forecast = replace(known(forecast_plan(None, plan)), errors=(0.1, 0.3))
    runs, time, *errors, disk = cost(plan, forecast, 2, 2, 3 * 10**9).split("; ")
    assert runs == "60 runs to train"
    assert time.startswith("time: 61 h of computing, 30 h with 2 runs at a time, done about ")
    assert "; ".join(errors) == "forecasts were off by 20% for the last 2 runs (median; at most 30%)"
    assert disk == "disk: 120.0 MB of weights"
    (memory,) = PlanView(plan, forecast, None, 2, 2, 3 * 10**9).notes()
    assert memory.startswith("memory: 4.0 GB with 2 runs at a time, but there are 3.0 GB here")
    assert list(PlanView(plan, forecast, None, 1, 1, 3 * 10**9).notes()) == []


def test_evaluations_are_in_no_time_and_the_line_says_so(tmp_path):
    plan = loaded(tmp_path, "evaluations: {wide: {beam: [2, 3]}}\n")
    forecast = forecast_plan(None, plan)
    (cell,) = forecast.cells
    known = Forecast(100.0, None, None, Basis.CELL, 1)
    time = cost(plan, forecast.with_forecasts({cell: known}), 1, 1, None)
    assert time.endswith("; 4 evaluations are not in it, since their time is not recorded")
    evaluates = [
        replace(each, decision=replace(each.decision, action=Action.EVALUATE, missing=each.decision.missing[:1]))
        for each in forecast.runs
    ]
    evaluated = replace(forecast, runs=tuple(evaluates))
    assert cost(plan, evaluated, 1, 1, None) == "time: unknown; 2 evaluations to make, whose time is not recorded"
    assert "◎ done, with evaluations to make" in lines(plan, evaluated, every=False)
    assert cost(plan, replace(forecast, runs=()), 1, 1, None) is None


def test_what_nobody_knows_is_not_in_the_cost(plan):
    costs = cost(plan, known(forecast_plan(None, plan), 1), 1, 1, None)
    assert "; 1 of 2 cells are not in it, since no similar run has completed; --probe measures them; " in costs
    assert costs.endswith("disk: at least 120.0 MB of weights")


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
    ],
)
def test_what_a_budget_leaves_out_is_summed_up(gone, what):
    assert left_out(gone) == f"the budget of 6h is enough for {what}"


def test_a_budget_that_is_too_short_for_every_run_says_so():
    every = {(run.cell.id, run.seed) for run in PLAN.runs}
    assert left_out(every) == "the budget of 6h is too short for any of the 30 runs to do"


def test_a_budget_may_be_enough_or_unknown():
    assert left_out(set()) == "the budget of 6h is enough for all 30 runs to do: about 60 min"
    enough = what_is_left_out(SIX_HOURS, Covered(PLAN.runs[:1], (), 50.0), PLAN)
    assert enough == "the budget of 6h is enough for the one run to do: about 50 s"
    with_evaluation = what_is_left_out(SIX_HOURS, Covered(PLAN.runs[:1], (), 50.0, evaluations=1), PLAN)
    assert with_evaluation == f"{enough}; 1 evaluation is not in it, since its time is not recorded"
    assert what_is_left_out(SIX_HOURS, Covered((), (), 0.0), PLAN) is None
    for unknown, like in ((PLAN.cells, ""), (PLAN.cells[:2], " like those of 2 cells")):
        line = what_is_left_out(SIX_HOURS, Covered(PLAN.runs, None, None, unknown), PLAN)
        assert line == f"no run{like} has finished yet, so it is unknown what the budget of 6h leaves out"
