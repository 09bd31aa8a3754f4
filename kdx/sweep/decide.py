"""Decides what to do with each run of a plan, and why.

`decide` is a pure function of the plan and the records; `decisions_in` reads from a database what it needs. It is
called again at each look. `leave_to_others` then finds the runs that another worker can resume exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType

from kdx.components.registry import meant_by
from kdx.grid.evaluations import ResolvedEvaluation
from kdx.grid.plan import Plan, PlannedRun, RunKey
from kdx.metrics.decimals import rounded
from kdx.report.seeds_until import Needed, needed_seeds
from kdx.run_files.files import files_beside, final_weights, resume_step
from kdx.store import evaluations, reading
from kdx.store.database import Database
from kdx.store.plan_from_records import plan_to_decide_with
from kdx.store.records import ENDED, LONGEST_LEASE, RunRecord, RunState, SweepRecord
from kdx.store.status import InProgress
from kdx.sweep.blocked import Pause, on_other_host, paused_in, paused_searches
from kdx.sweep.forecast import in_words
from kdx.sweep.lease_holder import Liveness, liveness
from kdx.sweep.longer import Shorter, shorter_runs
from kdx.vocabulary import IfChanged


class Action(StrEnum):
    """The next action of a sweep for a run."""

    START = "start"
    CONTINUE = "continue"
    EVALUATE = "evaluate"
    WAIT = "wait"
    LEAVE = "leave"
    """Another kdx may do it, and this one does not wait for that."""
    SKIP = "skip"


@dataclass(frozen=True)
class Decision:
    """The action for one run, and the reason in a few words."""

    run: PlannedRun
    record: RunRecord | None
    action: Action
    reason: str
    missing: tuple[ResolvedEvaluation, ...] = ()
    """Planned evaluations of this run that are not made yet, each once."""
    failed: int = 0
    """Number of evaluations that failed."""
    lost: int = 0
    """Number of those missing that cannot be made, since the weights are gone."""
    needed: bool = True
    """Whether the rule of the plan needs the seed, or may need it; a run that has ended counts as needed."""
    awaits_look: bool = False
    """Whether the seeds before it will show if the rule needs it."""
    evaluations: int = 0
    """Number of planned evaluations of this run."""
    exactly: bool = False
    """Whether it resumes only under the conditions that it had, since another worker may have them."""
    left: str | None = None
    """Why it is left to others, for a while or for good; None if it is not."""
    shorter: RunRecord | None = None
    """The run with fewer steps that it continues; None if it continues none."""
    first_step: int = 0
    """The step from which it is trained: that of its checkpoint, or of the state of the shorter run; 0: anew."""
    pause: Pause | None = None
    """Why it is not started although nobody computes it; None unless other runs of its cell failed alike."""

    def __repr__(self) -> str:
        return f"<{self.action} seed {self.run.seed} of {self.run.cell}: {self.reason}>"

    @property
    def to_make(self) -> tuple[ResolvedEvaluation, ...]:
        """The missing evaluations that can be made."""
        return tuple(evaluation for evaluation in self.missing if evaluation.metric or not self.lost)

    @property
    def trains(self) -> bool:
        """Whether the run is to be trained here, from its start or from a checkpoint."""
        return self.action in (Action.START, Action.CONTINUE)

    @property
    def alone(self) -> bool:
        """Whether it needs a GPU alone, since it lacked memory beside other runs."""
        return self.record is not None and self.record.lacked_memory_beside_others


def decide(
    plan: Plan,
    records: Mapping[RunKey, RunRecord],
    liveness: Callable[[str], Liveness],
    checkpoint: Callable[[RunRecord], int | None],
    evaluated: Mapping[int, Mapping[str, str | None]],
    has_weights: Callable[[RunRecord], bool],
    needed: Mapping[str, Needed] = MappingProxyType({}),
    paused: Mapping[str, Pause] = MappingProxyType({}),
    shorter: Mapping[RunKey, Shorter] = MappingProxyType({}),
) -> tuple[Decision, ...]:
    """Return the decision for every run of a plan, in the plan's order.

    Args:
        records: key → the newest generation of that run.
        liveness: returns what is known of a lease holder.
        checkpoint: returns the step of the newest checkpoint from which a run can resume; None if it has none.
        evaluated: run id → id of an evaluation → why it failed, or None if it was made.
        has_weights: returns whether a completed run still has the weights that it was tested with.
        needed: cell id → its seeds that are needed, if a rule of the plan decides that.
        paused: cell id, or id of a search → why its runs are not started, where they fail alike.
        shorter: key → a completed run of the same cell with fewer steps.
    """
    decisions = []
    for run in plan.runs:
        record = records.get(run.key)
        there = evaluated.get(record.id, {}) if record else {}
        planned = {evaluation.id: evaluation for evaluation in plan.evaluations_of(run.cell.id)}
        missing = tuple(evaluation for key, evaluation in planned.items() if key not in there)
        failed = sum(there.get(key) is not None for key in planned)
        so_far = needed.get(run.cell.id)
        if so_far and run.seed >= so_far.seeds and (record is None or record.state not in ENDED):
            action = Action.WAIT if so_far.open else Action.SKIP
            decisions.append(Decision(run, record, action, so_far.why, needed=so_far.open, awaits_look=so_far.open))
            continue
        lost = 0
        spec = run.cell.spec
        action, reason = _decide(record, spec.training.steps, spec.selection[0], liveness, checkpoint)
        valid = record is not None and record.invalidated is None
        if record and valid and record.state is RunState.COMPLETED and (missing or failed):
            # A metric of kept outputs needs no weights.
            needs = sum(evaluation.metric is None for evaluation in missing)
            lost = needs if needs and not has_weights(record) else 0
            action, why = _evaluate(len(missing) - lost, lost, failed)
            reason = f"{reason}; {why}"
        less = shorter.get(run.key) if action is Action.START else None
        reason = f"{reason}; {less.reason}" if less else reason
        pause = paused.get(run.search_id or run.cell.id) if action is Action.START else None
        if pause:
            action, reason = Action.SKIP, f"paused: {pause}"
        first = less.first_step if less else 0
        if record and action is Action.CONTINUE:
            first = record.checkpoint_step or 0
        decisions.append(
            Decision(
                run,
                record,
                action,
                reason,
                missing,
                failed,
                lost,
                evaluations=len(planned),
                shorter=less.record if less else None,
                first_step=first,
                pause=pause,
            )
        )
    return tuple(decisions)


def _evaluate(able: int, lost: int, failed: int) -> tuple[Action, str]:
    """Return the action for a completed run that lacks evaluations, and the reason.

    Args:
        able: number of those that can be made.
        lost: number of those whose weights are gone.
        failed: number of those that failed.
    """
    counts = {"to make": able, "not made: its weights are gone": lost, "failed": failed}
    reasons = ", ".join(f"{_count(count)} {what}" for what, count in counts.items() if count)
    return Action.EVALUATE if able else Action.SKIP, reasons


def _count(evaluations: int) -> str:
    return f"{evaluations} evaluation{'' if evaluations == 1 else 's'}"


def why_lost(run: RunRecord, liveness: Callable[[str], Liveness]) -> str | None:
    """Return why no process computes a running run any more; None if one does."""
    holder = liveness(run.owner) if run.owner else Liveness.GONE
    if holder is Liveness.GONE:
        return "its process is gone"
    # After a machine slept, or its clock jumped, every lease has lapsed although every holder is alive.
    if holder is not Liveness.HERE and (run.lease_left is None or not 0 <= run.lease_left <= LONGEST_LEASE):
        return "its lease has lapsed"
    return None


def _decide(
    record: RunRecord | None,
    steps: int,
    metric: str,
    liveness: Callable[[str], Liveness],
    checkpoint: Callable[[RunRecord], int | None],
) -> tuple[Action, str]:
    """Return the action for one run and the reason.

    Args:
        steps: number of steps that the run trains.
        metric: the metric of its validation score.
    """
    if record is None:
        return Action.START, "new"
    if record.invalidated is not None:
        return Action.SKIP, f"excluded from reports: {record.invalidated}; only kdx retry trains it again"
    match record.state:
        case RunState.PENDING if not record.attempt:
            return Action.START, "not started yet"
        case RunState.PENDING:
            return _again("to be tried again after", record, steps, checkpoint)
        case RunState.INTERRUPTED if record.lacked_memory_beside_others:
            return _again("once more alone, since it lacked memory beside others at", record, steps, checkpoint)
        case RunState.INTERRUPTED:
            return _again("interrupted at", record, steps, checkpoint)
        case RunState.RUNNING:
            lost = why_lost(record, liveness)
            if lost is None:
                return Action.WAIT, "running in another kdx"
            return _again(f"{lost}, at", record, steps, checkpoint)
        case RunState.FAILED:
            return Action.SKIP, f"failed: {record.error}"
        case RunState.CANCELLED:
            return Action.SKIP, "cancelled; only kdx retry takes it up again"
        case RunState.COMPLETED:
            if record.valid_score is None:
                return Action.SKIP, "completed, without a score"
            return Action.SKIP, f"completed, validation score {rounded(record.valid_score, metric)}"
        case RunState.DIVERGED:
            return Action.SKIP, f"diverged: {record.error}"
        case RunState.PRUNED:
            return Action.SKIP, f"pruned: {record.error}" if record.error else "pruned"


def _again(
    why: str, record: RunRecord, steps: int, checkpoint: Callable[[RunRecord], int | None]
) -> tuple[Action, str]:
    """Return the action for a run that had been started, and the reason with the step from which it continues."""
    reached, step = f"{why} step {record.progress_step}", checkpoint(record)
    if record.progress_step >= steps:
        # No checkpoint is written after the last step, so a resumed run goes back to the one before.
        reached += f" of {steps}, in the validation or test after it"
    if step is None:
        lost = "before its first checkpoint" if record.checkpoint_step is None else "but no checkpoint is left"
        return Action.START, f"starts again: {reached}, {lost}"
    return Action.CONTINUE, f"from its checkpoint at step {step}: {reached}"


class PlanLookups:
    """Looks up what changes rarely for a plan, and keeps it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._ended: frozenset[tuple[int, str, str | None]] | None = None
        self._needed: Mapping[str, Needed] = {}
        self._shorter: Mapping[RunKey, Shorter] | None = None

    def shorter(self, database: Database, files: Path, records: Mapping[RunKey, RunRecord]) -> Mapping[RunKey, Shorter]:
        """Return key → a completed run with fewer steps, for runs that nothing is recorded of; looked up once.

        Args:
            files: folder of the files of runs.
            records: key → the newest generation of that run.
        """
        if self._shorter is None:
            new = [run for run in self.plan.runs if run.key not in records or not records[run.key].progress_step]
            self._shorter = shorter_runs(database, files, new)
        return self._shorter

    def needed(self, database: Database | None, records: Mapping[RunKey, RunRecord]) -> Mapping[str, Needed]:
        """Return cell id → the seeds that the cell needs, kept until another run ends, or is excluded from reports;
        empty if the plan has no rule.

        Args:
            database: the database; None if there is none yet.
            records: key → the newest generation of that run.
        """
        if self.plan.seed_rule is None:
            return {}
        ended = frozenset((run.id, run.state, run.invalidated) for run in records.values() if run.state in ENDED)
        if ended != self._ended:
            results = reading.results(database, self.plan) if database else reading.no_results(self.plan)
            self._needed, self._ended = needed_seeds(results), ended
        return self._needed


def decisions_in(database: Database | None, plan: Plan, lookups: PlanLookups | None = None) -> tuple[Decision, ...]:
    """Return the decision for every run of a plan, given what a database and the files beside it have.

    Args:
        database: None if there is none yet.
        lookups: keeps from call to call what changes rarely.
    """
    lookups = lookups or PlanLookups(plan)
    if database is None:
        return decide(plan, {}, liveness, lambda _: None, {}, lambda _: False, lookups.needed(None, {}))
    cells = {cell.id for cell in plan.cells}
    files = files_beside(database.location)
    with database.read():
        # By cell and seed, not by the sweep's name: under that, another kdx may have registered another plan.
        records = reading.recorded(database, cells, plan.seeds)
        evaluated = evaluations.recorded(database, cells) if plan.evaluations else {}
        seeds = lookups.needed(database, records)
        planned = [records[run.key] for run in plan.runs if run.key in records]
        searches = {run.search_id for run in planned if run.search_id}
        paused = paused_in(database, [run for run in planned if run.search_id is None])
        paused |= paused_searches(database, searches) if searches else {}

    def has_weights(run: RunRecord) -> bool:
        return final_weights(files, run) is not None

    shorter = lookups.shorter(database, files, records)
    return decide(plan, records, liveness, partial(resume_step, files), evaluated, has_weights, seeds, paused, shorter)


def lacks_evaluations(database: Database, sweep: SweepRecord) -> bool:
    """Return whether evaluations that a sweep asks for can be made of runs that are completed."""
    if not sweep.grid.get("evaluations"):
        return False
    # Which other seeds are needed does not matter here.
    plan = replace(plan_to_decide_with(sweep), seed_rule=None)
    with meant_by(plan.components):
        return any(decision.action is Action.EVALUATE for decision in decisions_in(database, plan))


def leave_to_others(
    decisions: Mapping[int, Decision],
    in_progress: Mapping[int, InProgress],
    holder: str,
    *,
    patience: float,
    if_changed: IfChanged,
) -> dict[int, Decision]:
    """Return the decisions; runs that are left to others have another action, or come last.

    A run that was started under other conditions would end with other bits here, and a run whose checkpoint is on
    another machine would start again. Another worker may be able to resume it, so such a run waits for some time; after
    that, `--if-changed` decides. Whether conditions differ shows only when a run is about to resume
    (`kdx.training.resume`); once one run was refused, the answer is known for all that were started under the same.

    Args:
        decisions: run id → what would be done with the run.
        in_progress: run id → where it was computed, for runs that were started.
        holder: name of this process, see `kdx.sweep.lease_holder`.
        patience: seconds that a run waits for others after a process last computed it.
        if_changed: what to do after that with a run that was started under other conditions.
    """
    refused = {
        record.conditions: record.refusals[holder] for record in in_progress.values() if holder in record.refusals
    }
    first: dict[int, Decision] = {}
    last: dict[int, Decision] = {}
    for run_id, decision in decisions.items():
        record = in_progress.get(run_id)
        if record is None or decision.record is None:
            first[run_id] = decision
            continue
        early = record.waited < patience
        changes = refused.get(record.conditions)
        where = on_other_host(decision.record, record, has_checkpoint=decision.action is Action.CONTINUE)
        why = f"other conditions here: {changes}" if changes is not None else where
        if why is None:
            first[run_id] = replace(decision, exactly=early)
        elif changes is not None and if_changed is IfChanged.REFUSE:
            reason = f"left to another worker: {why}"
            last[run_id] = replace(decision, action=Action.LEAVE, reason=reason, left=why)
        elif early:
            reason = f"left to another worker for {in_words(patience - record.waited)}: {why}"
            last[run_id] = replace(decision, action=Action.WAIT, reason=reason, left=why)
        else:
            last[run_id] = decision
    return first | last
