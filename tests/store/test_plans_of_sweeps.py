from dataclasses import replace

from kdx.store import recording, sweeps
from kdx.store.database import Database


def test_a_sweep_keeps_every_plan_with_its_grid_as_it_was_written(database: Database, plan_of):
    first = replace(plan_of([0, 1], 2), sources={"a.yaml": "seeds: 2  # few\n", "base.yaml": "task: translation\n"})
    second = replace(plan_of([1, 2], 3), sources={"a.yaml": "seeds: 3\n"})
    sweep_id = recording.register(database, first, first.grid)
    recording.register(database, second, second.grid)
    old, new = sweeps.history(database, sweep_id)
    assert list(old.sources.items()) == [*first.sources.items()]
    assert (new.sources, old.grid["seeds"], new.grid["seeds"]) == (second.sources, [0, 1], [0, 1, 2])
    assert [set(one.cells) for one in (old, new)] == [{cell.id for cell in plan.cells} for plan in (first, second)]
    assert old.made <= new.made


def test_planning_the_same_again_adds_no_plan(database: Database, plan_of):
    plan = replace(plan_of(), sources={"a.yaml": "x"}, command="kdx sweep a.yaml")
    sweep_id = recording.register(database, plan, plan.grid)
    same = replace(plan, command="kdx sweep ./a.yaml")
    recording.register(database, same, same.grid)
    assert len(sweeps.history(database, sweep_id)) == 1
    assert sweeps.history(database, sweep_id)[0].grid["command"] == "kdx sweep a.yaml"


def test_a_comment_tables_seeds_or_cells_make_another_plan(database: Database, plan_of):
    plan = replace(plan_of([0, 1], 2), sources={"a.yaml": "x"})
    sweep_id = recording.register(database, plan, plan.grid)
    others = (
        replace(plan, sources={"a.yaml": "x  # y"}),
        replace(plan, description="other"),
        replace(plan_of([0, 1], 3), sources={"a.yaml": "x"}),
        replace(plan_of([0], 3), sources={"a.yaml": "x"}),
        plan,
    )
    for number, other in enumerate(others, 2):
        recording.register(database, other, other.grid)
        assert len(sweeps.history(database, sweep_id)) == number


def test_plans_of_other_sweeps_are_not_told(database: Database, plan_of):
    recording.register(database, plan_of(name="other"), {})
    sweep_id = recording.register(database, plan_of([], 1), {})
    (only,) = sweeps.history(database, sweep_id)
    assert only.cells == ()
