"""What is measured of a task from outside is kept with its plan, and read without its source."""

import json

import pytest

from kdx.grid.load import load_grid
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.task_facts import metrics_of, read_facts
from kdx.tasks import TASKS
from kdx.vocabulary import Direction


def test_a_plan_of_words_of_kdx_keeps_nothing(own_kernel):
    assert "task_facts" not in load_grid(own_kernel / "grid.yaml").grid


def test_a_task_is_known_by_what_was_kept_as_it_is_by_its_source(own_task):
    plan = load_grid(own_task / "grid.yaml")
    (cell,) = plan.cells
    here = ResolvedSpec.of(cell.spec).test_metrics
    assert here["confidence"] is Direction.MAX and "accuracy/throws=3-4" in here
    (facts,) = read_facts(json.loads(json.dumps(plan.grid))).values()
    assert facts.metrics == here and "answer" in facts.read_like and "majority" not in facts.read_like

    part = TASKS._outside.pop("majority")
    known = TASKS._known.pop("majority")
    try:
        assert metrics_of("majority", "coins") == {}
        elsewhere = ResolvedSpec(ResolvedSpec.read(cell.spec.text).plain, facts)
        assert elsewhere.test_metrics == here
        assert elsewhere.without_parts is not None and elsewhere.unknown == ()
    finally:
        TASKS._outside["majority"], TASKS._known["majority"] = part, known


@pytest.mark.parametrize(
    "kept", [5, [5], [{}], {"a": 1}, [{"task": "a", "corpus": "b", "metrics": {"x": "up"}, "read_like": []}]]
)
def test_what_was_kept_by_nobody_is_nothing(kept):
    assert read_facts({"task_facts": kept}) == {}
