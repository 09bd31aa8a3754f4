"""Makes the record of a trial."""

from kdx.store.records import RunRecord, RunState, TrialRecord, TrialState


def trial(number: int, parameters: dict, cell: str | None, state: TrialState, score: float | None) -> TrialRecord:
    """A trial with one run that ended so; without a cell, it has none."""
    ended = {"state": RunState(state), "progress_step": 40, "valid_score": score, "valid_step": 40, "seconds": 1.0}
    run = RunRecord(number, cell, 1_000_000, attempt=1, **ended)
    return TrialRecord(number, parameters, {}, cell, (run,) if cell else ())
