"""Continues searches from the records: draws the next round of trials, asks for their runs, picks winners.

A trial's runs belong to its search alone. How it ended follows from them, and a study of Optuna is made anew from the
records whenever one is needed. So a draw and a verdict are functions of the records alone, and kills, restarts and the
number of workers change nothing. Optuna's own storage, as the only truth, would not give that: it draws as workers ask.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell, PlannedRun, RunKey
from kdx.grid.tuning import Pruner, Search, Tuning
from kdx.store import reading, recording
from kdx.store.database import Database
from kdx.store.records import ENDED, RunRecord, RunState, TrialRecord, best_trial
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.vocabulary import Direction


class Searching:
    """The searches of a plan. Nothing is kept between two calls but copies of records."""

    def __init__(self, database: Database, plan: Plan) -> None:
        self.database = database
        self.plan = plan
        self._cells: dict[str, PlannedCell] = {}
        """Search → the first template that asks for it."""
        for cell in plan.cells:
            if cell.search is not None:
                self._cells.setdefault(cell.search.id, cell)
        self._trials: dict[str, list[TrialRecord]] = {key: [] for key in self._cells}
        """Search → its trials, up to as many as the plan asks for, as of the last look."""
        self._curves: dict[tuple[int, int], Mapping[int, float]] = {}
        """(run, attempt) → optimiser step → validation score, of runs of trials that have ended."""
        self._tried: dict[str, PlannedCell] = {}
        """Cell of a trial → what is run."""

    def look(self) -> None:
        """Read the records; record nothing and start nothing."""
        with self.database.read() as connection:
            recorded = reading.trials(connection, self._cells)
            for key, cell in self._cells.items():
                self._trials[key] = recorded.get(key, [])[: _search(cell).tuning.trials]
                self._read_curves(cell.spec.selection[0], [run for trial in self._trials[key] for run in trial.runs])

    def _read_curves(self, metric: str, runs: Sequence[RunRecord]) -> None:
        new = [run for run in runs if run.state in ENDED and (run.id, run.attempt) not in self._curves]
        curves = reading.curves_of(self.database, [run.id for run in new], [metric]) if new else {}
        for run in new:
            curve = curves.get(run.id, {}).get(metric)
            self._curves[run.id, run.attempt] = dict(zip(curve.steps, curve.values, strict=True)) if curve else {}

    def advance(self) -> Plan:
        """Draw the rounds whose turn it is, and return the runs of the trials that have not ended, as a plan.

        The searches are recorded before (`kdx.store.recording.register`).
        """
        while True:
            self.look()
            if not (self._draw() or self._prune()):
                return self._open_runs()

    @property
    def done(self) -> bool:
        """Whether every search has all its trials, as of the last look."""
        return self.ended >= self.total

    @property
    def ended(self) -> int:
        """Number of trials of all searches that have ended."""
        return sum(len(self._ended(key)) for key in self._cells)

    @property
    def total(self) -> int:
        """Number of trials that the plan asks for."""
        return sum(_search(cell).tuning.trials for cell in self._cells.values())

    @property
    def runs_left(self) -> int:
        """Number of runs that are still to be trained, at most."""
        tunings = {key: _search(cell).tuning for key, cell in self._cells.items()}
        return sum((tuning.trials - len(self._ended(key))) * len(tuning.seeds) for key, tuning in tunings.items())

    def trials(self, search_id: str) -> list[KnownTrial]:
        """Return the trials of a search up to the first that has not ended, in the order of their numbers."""
        return [self._known(search_id, trial) for trial in self._ended(search_id)]

    def winner(self, search_id: str) -> TrialRecord | None:
        """Return the completed trial with the best mean validation score, the first of equal ones; None without one."""
        return best_trial(self._ended(search_id), _direction(self._cells[search_id]))

    def with_winners(self) -> Plan:
        """Return the plan; a template whose search is done and has a winner is replaced by the winner's cell."""
        return replace(self.plan, cells=tuple(map(self._with_winner, self.plan.cells)))

    def _with_winner(self, cell: PlannedCell) -> PlannedCell:
        search = cell.search
        if search is None or len(self._ended(search.id)) < search.tuning.trials:
            return cell
        best = self.winner(search.id)
        if best is None:
            return cell
        spec = search.cell(best.parameters)
        return replace(cell, id=cell_id(spec), spec=spec, settings=(), won=True)

    def _ended(self, search_id: str) -> list[TrialRecord]:
        return [*takewhile(lambda trial: trial.state is not None, self._trials[search_id])]

    def _draw(self) -> bool:
        """Record the next round of each search whose trials have all ended; return whether there was any."""
        due = {
            key: cell
            for key, cell in self._cells.items()
            if len(self._ended(key)) == len(self._trials[key]) < _search(cell).tuning.trials
        }
        if not due:
            return False
        # late: Optuna takes 0.1 s to import, and a search that only waits draws nothing
        from kdx.tune.sampling import draw

        drawn = {key: draw(_search(cell), _direction(cell), self.trials(key)) for key, cell in due.items()}
        records = {
            key: [TrialRecord(trial.number, trial.parameters, trial.attributes, None) for trial in trials]
            for key, trials in drawn.items()
        }
        recording.add_trials(self.database, [(_search(due[key]), trials) for key, trials in records.items()])
        return True

    def _prune(self) -> bool:
        """End the trials that the signed-rank test ends before their next seed; return whether there was any."""
        wilcoxon = {key: cell for key, cell in self._cells.items() if _search(cell).tuning.pruner is Pruner.WILCOXON}
        if not wilcoxon:
            return False
        # late, as above
        from kdx.tune.pruning import ended_early, why

        ends = False
        for key, cell in wilcoxon.items():
            for trial in self._trials[key]:
                rivals = self._rivals(cell, trial)
                scores = _scores(_search(cell).tuning, trial)
                waiting = [run.id for run in trial.runs if run.state is RunState.PENDING]
                if rivals is None or not waiting or len(scores) + len(waiting) < len(trial.runs):
                    continue  # it runs to its end, has ended, or is to fail
                if ended_early(rivals, scores) is not None:
                    recording.prune_pending(self.database, waiting, why(rivals, f"tuning seed {len(scores)}"))
                    ends = True
        return ends

    def _open_runs(self) -> Plan:
        runs: dict[RunKey, PlannedRun] = {}
        # Trial by trial, and each of every cell before the next: the searches come to their ends together, so that no
        # worker waits for the last rounds of one.
        order = [
            (trial.number, place, cell.ordinal, trial, cell)
            for key, cell in self._cells.items()
            for trial in self._trials[key]
            if trial.state is None
            for place in _may_run(_search(cell).tuning, trial)
        ]
        for _, place, _, trial, cell in sorted(order, key=lambda entry: entry[:3]):
            search = _search(cell)
            rivals = None if search.tuning.pruner is Pruner.WILCOXON else self._rivals(cell, trial, place)
            run = PlannedRun(
                self._tried_cell(cell, trial), search.tuning.seeds[place], search.id, rivals.text() if rivals else None
            )
            runs.setdefault(run.key, run)
        cells = {run.cell.id: run.cell for run in runs.values()}
        seeds = tuple(dict.fromkeys(run.seed for run in runs.values()))
        return Plan(name=self.plan.name, cells=tuple(cells.values()), seeds=seeds, listed=tuple(runs.values()))

    def _tried_cell(self, cell: PlannedCell, trial: TrialRecord) -> PlannedCell:
        key = str(trial.cell_id)
        if key not in self._tried:
            labels = {**cell.labels, "trial": f"trial {trial.number}"}
            self._tried[key] = PlannedCell(key, len(self._tried), labels, _search(cell).cell(trial.parameters))
        return self._tried[key]

    def _rivals(self, cell: PlannedCell, trial: TrialRecord, place: int | None = None) -> Rivals | None:
        """Return the trials that a trial is judged against; None if it runs to its end.

        Args:
            place: judge its run with the tuning seed at that place by the runs of that place; None: judge the trial.
        """
        search, training = _search(cell), cell.spec.training
        tuning = search.tuning
        # A round is drawn when all before it have ended, so that none of their trials is missing.
        number = tuning.round_of(trial.number)
        before = [earlier for earlier in self._ended(search.id) if tuning.round_of(earlier.number) < number]
        if not before or tuning.pruner is Pruner.NONE:
            return None
        known = [replace(self._known(search.id, earlier, place), parameters={}, attributes={}) for earlier in before]
        every = training.validate_every
        longest = max(len(earlier.curve) for earlier in known)
        count = longest if every is None else math.ceil(training.steps / every)
        return Rivals(tuning.pruner, _direction(cell), search.id, trial.number, count, tuple(known))

    def _known(self, search_id: str, trial: TrialRecord, place: int | None = None) -> KnownTrial:
        """Return a trial with the curve of its run at a place, or, without a place, the mean curve of its runs."""
        tuning = _search(self._cells[search_id]).tuning
        runs = _by_seed(tuning, trial)
        if place is not None:
            runs = runs[place : place + 1]
        if tuning.pruner is Pruner.WILCOXON:
            curve: Mapping[int, float] = _scores(tuning, trial)
        else:
            curves = [self._curves.get((run.id, run.attempt), {}) for run in runs]
            shared = set(curves[0]).intersection(*curves) if curves else set()
            curve = {step: math.fsum(values[step] for values in curves) / len(curves) for step in sorted(shared)}
        return KnownTrial(trial.number, trial.parameters, trial.attributes, trial.state, trial.value, curve)


def with_winners(database: Database, plan: Plan) -> Plan:
    """Return the plan with the winners of searches that are done, as far as a database has them."""
    if not plan.searched:
        return plan
    search = Searching(database, plan)
    search.look()
    return search.with_winners()


def _search(cell: PlannedCell) -> Search:
    assert cell.search is not None
    return cell.search


def _direction(cell: PlannedCell) -> Direction:
    return cell.spec.selection[1]


def _by_seed(tuning: Tuning, trial: TrialRecord) -> list[RunRecord]:
    """Return the runs of a trial in the order of its tuning seeds."""
    return sorted(trial.runs, key=lambda run: tuning.seeds.index(run.seed))


def _scores(tuning: Tuning, trial: TrialRecord) -> dict[int, float]:
    """Return place of a tuning seed → validation score of its run, for runs that completed with one."""
    return {
        place: run.valid_score
        for place, run in enumerate(_by_seed(tuning, trial))
        if run.state is RunState.COMPLETED and run.valid_score is not None and math.isfinite(run.valid_score)
    }


def _may_run(tuning: Tuning, trial: TrialRecord) -> list[int]:
    """Return the places of the tuning seeds whose runs may start or resume: for the signed-rank test, the next one."""
    left = [place for place, run in enumerate(_by_seed(tuning, trial)) if run.state not in ENDED]
    return left[:1] if tuning.pruner is Pruner.WILCOXON else left
