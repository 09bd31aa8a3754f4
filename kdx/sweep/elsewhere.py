"""Tells where the checkpoint of a run lies that is not here."""

from kdx.store.begun import BegunRecord
from kdx.store.machine import machine
from kdx.store.records import RunRecord


def elsewhere(record: RunRecord, one: BegunRecord, *, has_checkpoint: bool) -> str | None:
    """Where the checkpoint of a run lies that is not here; None where it is here, or nowhere.

    Args:
        has_checkpoint: whether there is one here.
    """
    host = one.owner.partition("/")[0]
    if has_checkpoint or record.checkpoint_step is None or host == machine():
        return None
    return f"its checkpoint at step {record.checkpoint_step} is not here but on machine {host[:8]}"
