"""What a grid may say of its seeds."""

import pytest
from grids import faults_of

from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.seed_sources import SourceSeeds

GRID = """
name: g
task: translation
data: {corpus: synthetic-translation}
"""
RULE = "seeds: {min: 3, max: 12, until: decided}\n"
BASELINE = "axes: {kernel: [rbf, linear]}\ntables: [{name: t, rows: [kernel], baseline: rbf}]\n"


def read(tmp_path, text, **options):
    (tmp_path / "grid.yaml").write_text(GRID + text)
    return load_grid(tmp_path / "grid.yaml", **options)


def told(tmp_path, text):
    with pytest.raises(Faults) as refusal:
        read(tmp_path, text)
    (fault,) = refusal.value.faults
    return str(fault).replace(f"{tmp_path}/", "")


def test_seeds_are_added_until_the_comparison_with_a_declared_baseline_is_decided(tmp_path):
    plan = read(tmp_path, RULE + BASELINE)
    assert plan.seeds == tuple(range(12)) and str(plan.seed_rule) == "3 to 12 seeds a cell, until decided"
    assert plan.grid["seed_rule"] == {"min": 3, "max": 12, "until": "decided"}


def test_the_rule_is_no_part_of_a_cell(tmp_path):
    with_rule, without = (read(tmp_path, seeds + BASELINE) for seeds in (RULE, "seeds: 12\n"))
    assert [run.key for run in with_rule.runs] == [run.key for run in without.runs]
    assert "seed_rule" not in without.grid


def test_seeds_of_the_command_line_replace_the_rule(tmp_path):
    plan = read(tmp_path, RULE + BASELINE, seeds=(0, 1))
    assert plan.seeds == (0, 1) and plan.seed_rule is None


def test_a_rule_may_be_set_from_the_command_line(tmp_path):
    plan = read(tmp_path, BASELINE, given=["seeds={min: 2, max: 4, until: {bleu: 1}}"])
    assert str(plan.seed_rule) == "2 to 4 seeds a cell, until bleu ± 1"


@pytest.mark.parametrize(
    "tables",
    [
        "axes: {kernel: [rbf, linear]}\n",
        "axes: {kernel: [rbf, linear]}\ntables: [{name: t, rows: [kernel]}]\n",
        # Evaluations are made of runs that have ended; which seeds run cannot wait for them.
        "axes: {kernel: [rbf, linear]}\nevaluations: {wide: {beam: [2, 3]}}\n"
        "tables: [{name: t, rows: [kernel], columns: [evaluation.beam], baseline: {kernel: rbf}}]\n",
    ],
    ids=["no table", "no baseline", "of evaluations"],
)
def test_until_decided_needs_a_baseline(tmp_path, tables):
    fault = told(tmp_path, RULE + tables)
    assert fault.startswith("grid.yaml:5:33: until: decided needs a baseline") and "write `baseline:`" in fault
    assert read(tmp_path, RULE.replace("decided", "{bleu: 1}") + tables).seed_rule


def test_seeds_of_sources_are_crossed_and_one_that_is_left_out_has_seed_0(tmp_path):
    plan = read(tmp_path, "seeds: {initialisation: 2, order: [0, 5]}\n")
    assert list(map(SourceSeeds.of, plan.seeds)) == [(0, 0, 0), (0, 5, 0), (1, 0, 0), (1, 5, 0)]
    assert plan.seeds[0] == 0 and plan.grid["seeds"] == list(plan.seeds)


def test_sources_are_no_part_of_a_cell(tmp_path):
    crossed, without = (read(tmp_path, text) for text in ("seeds: {order: 2}\n", ""))
    assert [cell.id for cell in crossed.cells] == [cell.id for cell in without.cells]
    assert {run.key for run in without.runs} <= {run.key for run in crossed.runs}


def test_sources_may_be_set_from_the_command_line(tmp_path):
    assert len(read(tmp_path, "seeds: 5\n", given=["seeds={initialisation: 3, dropout: 2}"]).seeds) == 6


def test_seeds_of_the_order_of_streams_make_no_difference(tmp_path):
    text = "seeds: {order: 2}\ntask: prediction\ndata: {corpus: synthetic-language}\n"
    (tmp_path / "grid.yaml").write_text(f"name: g\n{text}")
    with pytest.raises(Faults, match="make no difference to prediction: streams are read from end to end"):
        load_grid(tmp_path / "grid.yaml")


def test_a_list_may_name_single_combinations_as_a_trace_writes_them(tmp_path):
    plan = read(tmp_path, "seeds: [0, i0-o1-d2]\n")
    assert plan.seeds == (0, SourceSeeds(0, 1, 2).number)


def test_the_message_about_a_mistyped_source_lists_the_sources(tmp_path):
    text = "task: prediction\ndata: {corpus: synthetic-language}\nseeds: {initialisation: 2, ordre: 3}\n"
    assert faults_of(tmp_path, text) == [
        "grid.yaml:3:28: unknown key `seeds.ordre`\n"
        "  allowed: initialisation, order, dropout\n  hint: did you mean `order`?"
    ]
