"""What a grid may say of its seeds."""

from kdx.grid.load import load_grid
from kdx.grid.seeds import SeedRule, rule_of

GRID = """
name: g
task: translation
data: {corpus: synthetic-translation}
"""
GIVEN = {"min": 3, "max": 12, "until": "decided"}
RULE = "seeds: {min: 3, max: 12, until: decided}\n"
BASELINE = "axes: {kernel: [rbf, linear]}\ntables: [{name: t, rows: [kernel], baseline: rbf}]\n"


def read(tmp_path, text, **options):
    (tmp_path / "grid.yaml").write_text(GRID + text)
    return load_grid(tmp_path / "grid.yaml", **options)


def test_seeds_are_added_until_the_comparison_with_a_declared_baseline_is_decided(tmp_path):
    plan = read(tmp_path, RULE + BASELINE)
    assert plan.seeds == tuple(range(12)) and str(plan.seed_rule) == "3 to 12 seeds a cell, until decided"
    assert plan.grid["seed_rule"] == {"min": 3, "max": 12, "until": "decided"}


def test_the_rule_is_no_part_of_a_cell(tmp_path):
    with_rule, without = (read(tmp_path, seeds + BASELINE) for seeds in (RULE, "seeds: 12\n"))
    assert [run.key for run in with_rule.runs] == [run.key for run in without.runs]
    assert "seed_rule" not in without.grid


def test_seeds_of_the_command_line_replace_the_rule(tmp_path):
    plan = read(tmp_path, RULE + BASELINE, given=["seeds=[0, 1]"])
    assert plan.seeds == (0, 1) and plan.seed_rule is None


def test_a_rule_may_be_set_from_the_command_line(tmp_path):
    plan = read(tmp_path, BASELINE, given=["seeds={min: 2, max: 4, until: decided}"])
    assert str(plan.seed_rule) == "2 to 4 seeds a cell, until decided"


def test_a_recorded_rule_is_read_again_and_older_records_have_none():
    rule = SeedRule.model_validate(GIVEN)
    assert rule_of({"seed_rule": rule.model_dump(mode="json")}) == rule
    assert rule_of({"seeds": [0, 1]}) is None


def test_a_rule_of_one_number_is_a_rule():
    assert SeedRule.model_validate(GIVEN | {"max": 3}).seeds == (0, 1, 2)
