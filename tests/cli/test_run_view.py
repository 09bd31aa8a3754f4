"""`KEY=VALUE` chooses runs by what they have."""

import pytest

from kdx.cli.run_view import RunView, chosen
from kdx.errors import KdxError


def view(run: int, **more) -> RunView:
    nothing = dict.fromkeys(("valid_score", "valid_step", "test_score", "seconds", "error", "undertrained"))
    facts = {"cell": "c", "choices": {"kernel": "rbf"}, "seed": run, "generation": 0, "state": "completed"}
    return RunView(run=run, **{**nothing, **facts, "step": 1, "attempt": 1, "invalidated": None, "tags": (), **more})


RUNS = [
    view(1, tags=["odd", "late"]),
    view(2, choices={"kernel": "linear"}, state="failed", not_needed="decided after 2 seeds"),
    view(3, tags=["odd"], invalidated="a bad disk"),
]


@pytest.mark.parametrize(
    ("conditions", "runs"),
    [
        ([], [1, 2, 3]),
        (["tag=odd"], [1, 3]),
        (["tag=odd", "tag=late"], [1]),
        (["cell=c"], [1, 2, 3]),
        (["kernel=rbf", "seed=3"], [3]),
        (["state=failed", "run=2"], [2]),
        (["state=completed"], [1, 3]),
        (["state=invalidated"], [3]),
        (["state=not_needed"], [2]),
    ],
)
def test_runs_meet_all_conditions(conditions, runs):
    assert [each.run for each in chosen(RUNS, conditions)] == runs


def test_what_fits_no_run_is_refused_with_what_there_is():
    with pytest.raises(KdxError) as caught:
        chosen(RUNS, ["tag=od"])
    assert (caught.value.problem, caught.value.hint) == ("no run has tag=od", "did you mean `odd`?")
    with pytest.raises(KdxError, match="no run has one yet"):
        chosen([view(1)], ["tag=odd"])
