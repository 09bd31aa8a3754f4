"""What stands of several databases is decided without writing, by what they say alone."""

from pathlib import Path

from kdx.store.merge_sides import PlanKey, RunKey, Side, SweepState
from kdx.store.merge_union import HOW, unite
from kdx.store.schema import metadata


def empty(name: str) -> Side:
    return Side(None, None, name, Path(name))


def with_sweep(name: str, seeds: list[int], made: float, tables: str = "[]") -> Side:
    """A side with one sweep and its runs planned, of which there is no row."""
    side = empty(name)
    side.id = name * 8
    grid = f'{{"tables": {tables}, "seeds": {seeds}, "command": "{name}"}}'.encode()
    row = {"id": None, "name": b"demo", "created": made, "updated": made, "grid": grid}
    cell = b"c" * 32
    state = SweepState(row, [PlanKey(made, grid, b"{}", (cell,))], {(cell, 0): (b"{}", True)})
    state.runs = {(cell, seed): True for seed in seeds}
    side.sweeps = {b"demo": state}
    return side


def test_every_table_says_how_it_is_joined():
    assert HOW.keys() == metadata.tables.keys()


def test_nothing_and_nothing_is_nothing():
    union = unite([empty("here"), empty("there")])
    assert (union.runs, union.sweeps, union.conflicts, union.left) == ({}, {}, [], [])


def test_a_sweep_with_other_seeds_follows_a_plan_with_all_of_them():
    union = unite([with_sweep("a", [0, 1], 5.0), with_sweep("b", [2], 3.0)])
    state = union.sweeps[b"demo"]
    assert sorted(seed for _, seed in state.runs) == [0, 1, 2]
    assert [plan.made for plan in state.plans] == [3.0, 5.0, 5.0]
    assert state.plans[-1].grid == b'{"tables": [], "seeds": [0, 1, 2], "command": "a"}' == state.row["grid"]
    assert (state.row["created"], state.row["updated"]) == (3.0, 5.0)


def test_once_joined_it_is_the_same_whichever_comes_again():
    sides = [with_sweep("a", [0, 1], 5.0), with_sweep("b", [2], 3.0), with_sweep("c", [7], 4.0)]
    once = unite(sides).sweeps
    assert once == unite(sides[::-1]).sweeps
    target = empty("target")
    target.sweeps = once
    for side in sides:
        assert unite([target, side]).sweeps == once


def test_another_plan_is_a_conflict_and_a_name_of_its_own_ends_it():
    sides = [with_sweep("a", [0], 5.0), with_sweep("b", [0], 3.0, tables='[{"name": "x"}]')]
    union = unite(sides)
    assert [(one.kind, one.differences) for one in union.conflicts] == [("sweep", ("other tables",))]
    assert union.sweeps == {b"demo": sides[0].sweeps[b"demo"]}
    renamed = unite(sides, rename=True)
    assert (renamed.conflicts, sorted(renamed.sweeps)) == ([], [b"demo", b"demo-of-bbbbbbbb"])


def test_keys_of_runs_are_in_the_order_of_generations():
    assert RunKey(b"c", 0, 1) < RunKey(b"c", 0, 2) < RunKey(b"d", 0, 0)
