"""`KEY=VALUE` chooses runs by what they have."""

import pytest

from kdx.cli.choosing import chosen
from kdx.errors import KdxError


def row(run: int, **more):
    return {"run": run, "cell": "c", "state": "completed", "seed": run, "choices": {"kernel": "rbf"}, **more}


ROWS = [
    row(1, tags=["odd", "late"]),
    row(2, choices={"kernel": "linear"}, state="failed"),
    row(3, tags=["odd"], invalidated="a bad disk"),
]


@pytest.mark.parametrize(
    ("conditions", "runs"),
    [
        ([], [1, 2, 3]),
        (["tag=odd"], [1, 3]),
        (["tag=odd", "tag=late"], [1]),
        (["cell=c"], [1, 2, 3]),
        (["kernel=rbf", "seed=3"], [3]),
        (["state=failed"], [2]),
        (["state=completed"], [1, 3]),
        (["state=invalidated"], [3]),
    ],
)
def test_runs_fulfil_all_conditions(conditions, runs):
    assert [one["run"] for one in chosen(ROWS, conditions)] == runs


def test_what_fits_no_run_is_refused_with_what_there_is():
    with pytest.raises(KdxError) as caught:
        chosen(ROWS, ["tag=od"])
    assert (caught.value.problem, caught.value.hint) == ("no run has tag=od", "did you mean `odd`?")
    with pytest.raises(KdxError, match="no run has one yet"):
        chosen([row(1)], ["tag=odd"])
