"""Runs are chosen by KEY=VALUE; tests of kdx status and kdx show have the rest."""

import pytest

from kdx.cli.choosing import chosen
from kdx.errors import KdxError

ROWS = [
    {"run": 1, "cell": "a", "seed": 0, "state": "failed", "choices": {"kernel": "rbf"}},
    {"run": 2, "cell": "a", "seed": 1, "state": "completed", "choices": {"kernel": "rbf", "norm": "pre"}},
    {"run": 3, "cell": "b", "seed": 1, "state": "completed", "choices": {"kernel": "linear"}},
]


@pytest.mark.parametrize(
    ("conditions", "runs"),
    [
        ([], [1, 2, 3]),
        (["kernel=rbf"], [1, 2]),
        (["kernel=rbf", "seed=1"], [2]),
        (["norm=–"], [1, 3]),
        (["run=3"], [3]),
        (["cell=a", "state=failed"], [1]),
    ],
)
def test_all_conditions_hold(conditions, runs):
    assert [row["run"] for row in chosen(ROWS, conditions)] == runs


def test_what_chooses_nothing_is_refused():
    for condition in ("kernel", "kernl=rbf", "kernel=rfb", "seed=7"):
        with pytest.raises(KdxError):
            chosen(ROWS, [condition])
    assert chosen([], ["kernel=rbf"]) == []
