"""Goes on with searches from what is recorded: settles trials that have ended, draws the next round, picks winners.

Nothing is kept between two calls but copies of records, so that a search goes on after a kill as if nothing had
happened. The outcome of a trial is read off its runs' curves, whoever trained them: a run that another grid has trained
to its end counts as this search would have ended it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from kdx.grid.identity import cell_id
from kdx.grid.plan import Plan, PlannedCell, PlannedRun
from kdx.grid.tuning import Pruner, Search
from kdx.store import reading, searches
from kdx.store.database import Database
from kdx.store.records import FINAL, CurveRecord, RunRecord, RunState, TrialRecord, TrialState
from kdx.store.searches import NewTrial
from kdx.tune.known_trial import KnownTrial, Rivals
from kdx.tune.trial_plan import TrialPlan
from kdx.vocabulary import Direction

_OVER = FINAL | {RunState.FAILED, RunState.CANCELLED}


@dataclass(frozen=True)
class _RunOutcome:
    """How a run counts for a search."""

    state: TrialState
    score: float | None
    curve: Mapping[int, float]
    """Optimiser step → validation score, up to where the search ends it."""


@dataclass(frozen=True)
class _Ended:
    """A trial that has ended."""

    trial: KnownTrial
    curves: tuple[Mapping[int, float], ...]
    """Of its runs, in the order of the tuning seeds; fewer where the later ones were not begun."""


class Searching:
    """The searches of a plan."""

    def __init__(self, database: Database, plan: Plan) -> None:
        self._database = database
        self._plan = plan
        self._cells: dict[str, PlannedCell] = {}
        """Search → the first template that asks for it."""
        for cell in plan.cells:
            if cell.search is not None:
                self._cells.setdefault(cell.search.id, cell)
        self._ended: dict[str, list[_Ended]] = {key: [] for key in self._cells}
        self._unrecorded: dict[tuple[str, int], tuple[TrialState, float | None]] = {}
        """(search, number) → how a trial ended, where the database does not have it yet."""
        self._specs: dict[str, PlannedCell] = {}
        """Cell of a trial → what is run."""

    def look(self) -> None:
        """Sees what has ended; records nothing and begins nothing."""
        with self._database.read():
            recorded = self._recorded()
            runs = self._runs(recorded)
        self._settle(recorded, runs, record=False)

    def advance(self) -> TrialPlan:
        """Settles what has ended, draws rounds whose turn it is, and says which runs may begin.

        The searches are recorded before (`kdx.store.recording.register`).
        """
        while True:
            with self._database.read():
                recorded = self._recorded()
                runs = self._runs(recorded)
            asked = self._settle(recorded, runs)
            new = self._draw(recorded)
            if not new:
                return self._asked(asked)
            searches.add(self._database, new)

    @property
    def done(self) -> bool:
        """Whether every search has all its trials, as far as the last call of `advance` saw."""
        return all(len(self._ended[key]) >= _search(cell).tuning.trials for key, cell in self._cells.items())

    @property
    def ended(self) -> int:
        """How many trials of all searches have ended."""
        return sum(map(len, self._ended.values()))

    @property
    def asked(self) -> int:
        """How many trials the plan asks for."""
        return sum(_search(cell).tuning.trials for cell in self._cells.values())

    @property
    def runs_left(self) -> int:
        """At most so many runs are still to be trained."""
        tunings = {key: _search(cell).tuning for key, cell in self._cells.items()}
        return sum((one.trials - len(self._ended[key])) * len(one.seeds) for key, one in tunings.items())

    def trials(self, search_id: str) -> tuple[KnownTrial, ...]:
        """The trials of a search that have ended, in the order of their numbers."""
        return tuple(one.trial for one in self._ended[search_id])

    def winner(self, search_id: str) -> KnownTrial | None:
        """The completed trial with the best mean validation score, of equal ones the first; None: there is none."""
        cell = self._cells[search_id]
        return searches.best_trial(self.trials(search_id)[: _search(cell).tuning.trials], _direction(cell))

    def with_winners(self) -> Plan:
        """The plan with the winner's cell in the place of each template whose search is done and has one."""
        return replace(self._plan, cells=tuple(map(self._with_winner, self._plan.cells)))

    def _with_winner(self, cell: PlannedCell) -> PlannedCell:
        search = cell.search
        if search is None or len(self._ended[search.id]) < search.tuning.trials:
            return cell
        best = self.winner(search.id)
        if best is None:
            return cell
        spec = search.cell(best.parameters)
        return replace(cell, id=cell_id(spec), spec=spec, settings=(), won=True)

    def _recorded(self) -> dict[str, list[TrialRecord]]:
        """The trials of each search. What was found of one is forgotten once trials of it are taken up again."""
        recorded = searches.trials(self._database, self._cells)
        for key, many in recorded.items():
            if any(
                one.state is None and (key, one.number) not in self._unrecorded for one in many[: len(self._ended[key])]
            ):
                self._ended[key] = []
        return recorded

    def _fresh(self, recorded: Mapping[str, Sequence[TrialRecord]]) -> list[tuple[str, TrialRecord]]:
        """(search, trial) of those that are not known to have ended."""
        known = {key: len(ended) for key, ended in self._ended.items()}
        return [(key, one) for key, many in recorded.items() for one in many if one.number >= known[key]]

    def _settle(
        self, recorded: Mapping[str, Sequence[TrialRecord]], runs: "_Runs", *, record: bool = True
    ) -> list["_Open"]:
        """Records trials that have ended, and returns the others."""
        fresh = self._fresh(recorded)
        still_open: list[_Open] = []
        stopped: set[str] = set()
        for key, one in fresh:
            cell = self._cells[key]
            tuning = _search(cell).tuning
            if one.number >= tuning.trials:
                continue  # another plan asked for more
            before = self._ended[key]
            # A round is drawn when all before it have ended, so that these are there whole.
            rivals = [past for past in before if tuning.round_of(past.trial.number) < tuning.round_of(one.number)]
            trial = _Open(cell, one, rivals)
            ended = trial.judge(runs)
            if ended is None:
                still_open.append(trial)
                stopped.add(key)
                continue
            if one.state is None:
                self._unrecorded[key, one.number] = ended.trial.state or TrialState.FAILED, ended.trial.value
            if key not in stopped:
                self._ended[key] = [*before, ended]
        if self._unrecorded and record:
            searches.settle(self._database, self._unrecorded)
            self._unrecorded = {}
        return still_open

    def _runs(self, recorded: Mapping[str, Sequence[TrialRecord]]) -> "_Runs":
        cells = {one.cell_id for _, one in self._fresh(recorded) if one.cell_id}
        return _Runs(self._database, cells, {_metric(cell) for cell in self._cells.values()})

    def _draw(self, recorded: Mapping[str, Sequence[TrialRecord]]) -> list[tuple[Search, list[NewTrial]]]:
        # late: Optuna takes 0.1 s to import, and a search that only waits draws nothing
        from kdx.tune.sampling import draw

        new: list[tuple[Search, list[NewTrial]]] = []
        for key, cell in self._cells.items():
            search, ended = _search(cell), self._ended[key]
            if len(ended) < len(recorded.get(key, ())) or len(ended) >= search.tuning.trials:
                continue
            drawn = draw(search, _direction(cell), [one.trial for one in ended])
            new.append((search, [_new(search, one) for one in drawn]))
        return new

    def _asked(self, still_open: Sequence["_Open"]) -> TrialPlan:
        cells: dict[str, PlannedCell] = {}
        runs: dict[tuple[str, int], PlannedRun] = {}
        again: set[tuple[str, int]] = set()
        rivals: dict[tuple[str, int], Rivals] = {}
        search_of: dict[str, str] = {}
        # Trial by trial, and each of every cell before the next: the searches come to their ends together, so that no
        # worker waits for the last rounds of one.
        order = [
            (trial.record.number, place, trial.cell.ordinal, seed, trial)
            for trial in still_open
            for place, seed in trial.to_run
        ]
        for _, place, _, seed, trial in sorted(order, key=lambda one: one[:3]):
            planned = self._planned(trial)
            cell = cells.setdefault(planned.id, replace(planned, ordinal=len(cells)))
            search_of.setdefault(cell.id, _search(trial.cell).id)
            run = PlannedRun(cell, seed)
            if run.key in runs:
                continue
            runs[run.key] = run
            if seed in trial.again:
                again.add(run.key)
            if (of := trial.rivals(place)) is not None:
                rivals[run.key] = of
        seeds = tuple(dict.fromkeys(run.seed for run in runs.values()))
        return TrialPlan(
            name=self._plan.name,
            cells=tuple(cells.values()),
            seeds=seeds,
            asked=tuple(runs.values()),
            again=frozenset(again),
            search_of=search_of,
            rivals=rivals,
        )

    def _planned(self, trial: "_Open") -> PlannedCell:
        key = str(trial.record.cell_id)
        if key not in self._specs:
            spec = _search(trial.cell).cell(trial.record.parameters)
            labels = {**trial.cell.labels, "trial": f"trial {trial.record.number}"}
            self._specs[key] = PlannedCell(key, 0, labels, spec)
        return self._specs[key]


class _Runs:
    """The runs of trials, and the curves of those that have ended."""

    def __init__(self, database: Database, cells: set[str], metrics: set[str]) -> None:
        self.over: dict[tuple[str, int], RunRecord] = {}
        """(cell id, seed) → the newest generation that has ended; a final one may be followed by one that has not."""
        self._curves: dict[int, dict[str, CurveRecord]] = {}
        if not cells:
            return
        # One transaction, for to begin one takes longer than what is asked in it.
        with database.read():
            newest = reading.recorded(database, cells)
            self.over = {key: one for key, one in newest.items() if one.state in _OVER}
            repeated = {one.cell_id for one in newest.values() if one.generation and one.state not in _OVER}
            if repeated:
                self.over = reading.newest_final(database, repeated) | self.over
            self._curves = reading.curves_of(database, [one.id for one in self.over.values()], metrics)

    def curve(self, record: RunRecord, metric: str) -> dict[int, float]:
        found: CurveRecord | None = self._curves.get(record.id, {}).get(metric)
        return dict(zip(found.steps, found.values, strict=True)) if found else {}


class _Open:
    """A trial that is not known to have ended."""

    def __init__(self, cell: PlannedCell, record: TrialRecord, before: Sequence[_Ended]) -> None:
        self.cell = cell
        self.record = record
        self._before = before
        self.to_run: list[tuple[int, int]] = []
        """(place, seed) of the runs that may begin or go on."""
        self.again: set[int] = set()
        """Seeds of those that another search ended early and this one would not have."""

    def rivals(self, place: int) -> Rivals | None:
        """What its run with the tuning seed at that place is judged against; None: it runs to its end."""
        pruner = _search(self.cell).tuning.pruner
        if not self._before or pruner in (Pruner.NONE, Pruner.WILCOXON):
            return None
        return self._rivals(
            [replace(one.trial, curve=one.curves[place] if place < len(one.curves) else {}) for one in self._before]
        )

    def judge(self, runs: _Runs) -> _Ended | None:
        """How it ended; None: it has not, and `to_run` and `again` say what it lacks."""
        tuning = _search(self.cell).tuning
        if self.record.cell_id is None:
            return self._as(TrialState.FAILED, None, [])
        outcomes: list[_RunOutcome] = []
        for place, seed in enumerate(tuning.seeds):
            outcome = self._outcome(place, seed, runs)
            if outcome is None and self.record.state is not None:
                outcome = _RunOutcome(self.record.state, None, {})  # the run is not what it was
            if outcome is not None:
                outcomes.append(outcome)
                if tuning.pruner is Pruner.WILCOXON and self._is_worse(outcomes):
                    return self._of(TrialState.PRUNED, outcomes)
                continue
            self.to_run.append((place, seed))
            if tuning.pruner is Pruner.WILCOXON:
                break
        if self.to_run:
            return None
        for state in (TrialState.FAILED, TrialState.PRUNED):
            if any(one.state is state for one in outcomes):
                return self._of(state, outcomes)
        return self._of(TrialState.COMPLETED, outcomes)

    def _outcome(self, place: int, seed: int, runs: _Runs) -> _RunOutcome | None:
        """How its run with a seed ended; None: it has not."""
        record = runs.over.get((str(self.record.cell_id), seed))
        if record is None:
            return None
        curve = runs.curve(record, _metric(self.cell))
        rivals = self.rivals(place)
        if rivals is not None:
            from kdx.tune.pruning import ended_early

            steps = _search(self.cell).cell(self.record.parameters).training.steps
            end = ended_early(rivals, {step: score for step, score in curve.items() if step < steps})
            if end is not None:
                until = {step: score for step, score in curve.items() if step <= end}
                best = min if _direction(self.cell) is Direction.MIN else max
                return _RunOutcome(TrialState.PRUNED, best(until.values()), until)
        if record.state is RunState.PRUNED:
            self.again.add(seed)
            return None
        score = record.valid_score
        if record.state is RunState.COMPLETED and score is not None and math.isfinite(score):
            return _RunOutcome(TrialState.COMPLETED, score, curve)
        return _RunOutcome(TrialState.FAILED, None, curve)

    def _is_worse(self, outcomes: Sequence[_RunOutcome]) -> bool:
        """Whether the signed-rank test ends it before its next seed."""
        if not self._before or any(one.score is None for one in outcomes):
            return False
        from kdx.tune.pruning import ended_early

        scores = {place: one.score for place, one in enumerate(outcomes) if one.score is not None}
        rivals = self._rivals([one.trial for one in self._before])
        return len(outcomes) < len(_search(self.cell).tuning.seeds) and ended_early(rivals, scores) is not None

    def _rivals(self, trials: Sequence[KnownTrial]) -> Rivals:
        tuning, training = _search(self.cell).tuning, self.cell.spec.training
        every = training.validate_every
        longest = max((len(one.curve) for one in trials), default=1)
        count = longest if every is None else math.ceil(training.steps / every)
        known = tuple(replace(one, parameters={}, attributes={}) for one in trials)
        return Rivals(tuning.pruner, _direction(self.cell), _search(self.cell).id, self.record.number, count, known)

    def _of(self, state: TrialState, outcomes: Sequence[_RunOutcome]) -> _Ended:
        scores = [one.score for one in outcomes if one.score is not None]
        whole = state is not TrialState.FAILED and len(scores) == len(outcomes)
        value = math.fsum(scores) / len(scores) if whole and scores else None
        return self._as(state, value, outcomes)

    def _as(self, state: TrialState, value: float | None, outcomes: Sequence[_RunOutcome]) -> _Ended:
        curves = tuple(one.curve for one in outcomes)
        if _search(self.cell).tuning.pruner is Pruner.WILCOXON:
            mean = {place: one.score for place, one in enumerate(outcomes) if one.score is not None}
        else:
            shared = set(curves[0]).intersection(*curves) if curves else set()
            mean = {step: math.fsum(one[step] for one in curves) / len(curves) for step in sorted(shared)}
        if self.record.state is not None:
            state, value = self.record.state, self.record.value  # which stands, whatever became of its runs
        known = KnownTrial(self.record.number, self.record.parameters, self.record.attributes, state, value, mean)
        return _Ended(known, curves)


def _search(cell: PlannedCell) -> Search:
    assert cell.search is not None
    return cell.search


def _new(search: Search, drawn: KnownTrial) -> NewTrial:
    try:
        spec = search.cell(drawn.parameters)
    except ValidationError:
        spec = None  # such parameters do not go together
    return NewTrial(drawn.number, drawn.parameters, drawn.attributes, spec)


def _metric(cell: PlannedCell) -> str:
    return cell.spec.selection[0]


def _direction(cell: PlannedCell) -> Direction:
    return cell.spec.selection[1]


def with_winners(database: Database, plan: Plan) -> Plan:
    """The plan with the winners of searches that are done, as far as a database has them."""
    if not plan.searched:
        return plan
    search = Searching(database, plan)
    search.look()
    return search.with_winners()
