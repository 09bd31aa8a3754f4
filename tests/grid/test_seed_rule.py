"""A rule for the number of seeds: what it is, in words and in a record."""

import pytest
from pydantic import ValidationError

from kdx.grid.seed_rule import MOST, SeedRule, rule_of

GIVEN = {"min": 3, "max": 12, "until": "decided"}


def test_a_rule_says_what_it_is():
    assert str(SeedRule.model_validate(GIVEN)) == "3 to 12 seeds a cell, until decided"
    narrow = SeedRule.model_validate(GIVEN | {"until": {"bleu": 0.3, "loss": 1}})
    assert str(narrow) == "3 to 12 seeds a cell, until bleu ± 0.3 and loss ± 1"
    assert narrow.widths == {"bleu": 0.3, "loss": 1.0} and SeedRule.model_validate(GIVEN).widths == {}
    assert SeedRule.model_validate(GIVEN).seeds == tuple(range(12))


def test_a_recorded_rule_is_read_again_and_older_records_have_none():
    rule = SeedRule.model_validate(GIVEN)
    assert rule_of({"seed_rule": rule.model_dump(mode="json")}) == rule
    assert rule_of({"seeds": [0, 1]}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"min": 1},
        {"min": True},
        {"max": 2},
        {"max": MOST + 1},
        {"until": "decide"},
        {"until": {}},
        {"until": {"bleu": 0}},
        {"until": {"bleu": -1.0}},
        {"until": {"bleu": float("inf")}},
        {"until": {"bleu": True}},
        {"until": None},
        {"step": 2},
    ],
    ids=str,
)
def test_no_other_rule_is_one(wrong):
    with pytest.raises(ValidationError):
        SeedRule.model_validate(GIVEN | wrong)


def test_a_rule_of_one_number_is_a_rule():
    assert SeedRule.model_validate(GIVEN | {"max": 3}).seeds == (0, 1, 2)
