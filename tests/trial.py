"""Makes the record of a trial."""

from kdx.store.records import RunRecord, RunState, TrialRecord, TrialState


def trial(number: int, parameters: dict, cell: str | None, state: TrialState, score: float | None) -> TrialRecord:
    """A trial with one run that ended so; without a cell, it has none."""
    usual = {"id": number, "seed": 1_000_000, "generation": 0, "attempt": 1, "owner": None, "lease_left": None}
    usual |= {"progress_step": 40, "stalls": 0, "valid_step": 40, "test_score": None, "error": None, "seconds": 1.0}
    run = RunRecord(**usual, cell_id=cell, state=RunState(state), valid_score=score)
    return TrialRecord(number, parameters, {}, cell, (run,) if cell else ())
