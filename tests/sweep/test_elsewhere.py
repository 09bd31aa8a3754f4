"""A run waits for another machine only where its checkpoint lies there and not here."""

import pytest

from kdx.store.begun import BegunRecord, Conditions
from kdx.store.machine import machine
from kdx.store.records import RunRecord, RunState
from kdx.sweep.elsewhere import elsewhere


def run(checkpoint: int | None) -> RunRecord:
    return RunRecord(
        id=1, cell_id="c", seed=0, generation=0, state=RunState.INTERRUPTED, attempt=1, owner=None, lease_left=None,
        progress_step=40, stalls=0, valid_score=None, valid_step=None, test_score=None, error=None, seconds=None,
        checkpoint_step=checkpoint,
    )  # fmt: skip


def begun(host: str) -> BegunRecord:
    return BegunRecord(Conditions("environment", "data"), f"{host}/-/-/1/1/x", 0.0, {})


def test_a_checkpoint_on_another_machine_is_named_with_its_step():
    where = elsewhere(run(30), begun("0123456789abcdef"), has_checkpoint=False)
    assert where == "its checkpoint at step 30 is not here but on machine 01234567"


@pytest.mark.parametrize(
    ("checkpoint", "host", "has_checkpoint"),
    [(30, "there", True), (None, "there", False), (30, machine(), False)],
    ids=["it is here as well", "it has none", "it was begun here"],
)
def test_nothing_is_elsewhere(checkpoint, host, has_checkpoint):
    assert elsewhere(run(checkpoint), begun(host), has_checkpoint=has_checkpoint) is None
