"""Cells that a grid names run first; nothing else of it changes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.spec import CellSpec

GRID = """\
task: answer
data: {corpus: copy, length: 4}
model: {width: 16, heads: 2, decoder_layers: 1, inner: 32}
training: {steps: 60, batch_tokens: 256}
axes: {kernel: [exponential, rbf, linear], norm: [post, pre]}
seeds: 2
"""
SPEC = CellSpec.model_validate({"task": "translation", "data": {"corpus": "text"}})


def load(tmp_path: Path, more: str, **options: object) -> Plan:
    file = tmp_path / "grid.yaml"
    file.write_text(GRID + more)
    return load_grid(file, **options)


def order(plan: Plan) -> list[str]:
    return [f"{' '.join(run.cell.labels.values())} {run.seed}" for run in plan.runs]


def test_cells_of_the_first_condition_run_before_those_of_the_second_and_these_before_others(tmp_path):
    plan = load(tmp_path, "first:\n- {kernel: linear}\n- {norm: pre}\n")
    assert order(plan) == [
        *("linear post 0", "linear pre 0", "linear post 1", "linear pre 1"),
        *("exponential pre 0", "rbf pre 0", "exponential pre 1", "rbf pre 1"),
        *("exponential post 0", "rbf post 0", "exponential post 1", "rbf post 1"),
    ]


def test_the_order_is_no_part_of_the_cells(tmp_path):
    plain, ordered = load(tmp_path, ""), load(tmp_path, "first: {kernel: linear, not: {norm: pre}}\n")
    assert [cell.id for cell in plain.cells] == [cell.id for cell in ordered.cells]
    assert {run.key for run in plain.runs} == {run.key for run in ordered.runs}
    assert "priorities" not in plain.grid and ordered.grid["priorities"] == [1, 1, 1, 1, 0, 1]
    assert json.loads(json.dumps(ordered.grid)) == ordered.grid


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12), st.integers(1, 4))
def test_priorities_come_before_seeds_and_seeds_before_the_order_of_the_plan(drawn, seeds):
    cells = [PlannedCell(f"c{id}", at, {}, SPEC, priority=priority) for at, (priority, id) in enumerate(drawn)]
    plan = Plan("p", tuple(cells), tuple(range(seeds)))
    due = {cell.id: min(one.priority for one in cells if one.id == cell.id) for cell in cells}
    keys = [(due[run.cell.id], run.seed, run.cell.ordinal) for run in plan.runs]
    assert keys == sorted(keys) and len(keys) == len(due) * seeds


def test_a_condition_asks_the_cell_as_it_is_with_overrides_and_whatever_sub_grid_it_is_of(tmp_path):
    more = "overrides: {when: {kernel: rbf}, set: {training: {steps: 7}}}\nfirst: {training.steps: 7}\n"
    assert {run.cell.labels["kernel"] for run in load(tmp_path, more).runs[:4]} == {"rbf"}
    more = "grids: {small: {}, large: {model: {width: 32}}}\nfirst: {grid: large}\n"
    assert {run.cell.spec.model.width for run in load(tmp_path, more).runs[:12]} == {32}


@pytest.mark.parametrize(
    ("first", "fault"),
    [
        ("[{kernel: rfb}]", "7:18: no combination has kernel = rfb\n  allowed: exponential, rbf, linear"),
        ("[{krenel: rbf}]", "7:10: unknown factor `krenel`"),
        ("[{kernel: rbf, not: {kernel: rbf}}]", "7:9: no combination fulfils all of this condition\n  hint: remove it"),
        ("[]", "7:8: `[]` under `first`"),
        ("3", "7:8: `3` under `first`"),
        ("[rbf]", "7:9: `rbf` under `first`\n  allowed: a mapping"),
    ],
)
def test_a_condition_that_names_nothing_is_refused_as_an_exclusion_is(tmp_path, first, fault):
    with pytest.raises(Faults) as refusal:
        load(tmp_path, f"first: {first}\n")
    assert str(refusal.value).replace(f"{tmp_path}/grid.yaml:", "").startswith(fault)
    with pytest.raises(Faults) as excluded:
        load(tmp_path, f"exclude: {first}\n")
    assert str(excluded.value).count("\n") == str(refusal.value).count("\n")


def test_an_idle_condition_on_what_the_command_line_sets_is_none_to_refuse(tmp_path):
    plan = load(tmp_path, "first: {training.steps: 60}\n", given=["training.steps=9"])
    assert {cell.priority for cell in plan.cells} == {1}


def test_a_grid_that_extends_another_may_take_its_order_out(tmp_path):
    load(tmp_path, "first: {kernel: linear}\n")
    (tmp_path / "other.yaml").write_text("extends: grid.yaml\nfirst: null\n")
    assert {cell.priority for cell in load_grid(tmp_path / "other.yaml").cells} == {0}
