"""Shows the progress of a sweep: a live display on a terminal, one line for each event elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TimeElapsedColumn
from rich.table import Column
from rich.text import Text
from rich.theme import Theme

from kdx.cli.console import say, waits_for
from kdx.cli.wording import NOT_NEEDED, PAUSED, count_of, run_name
from kdx.grid.plan import Plan, PlannedRun, RunKey
from kdx.metrics.decimals import rounded
from kdx.report.writers.styles import BARS, styled
from kdx.report.writers.widths import cells, folded, shortened
from kdx.sanitize import sanitize_lines
from kdx.store.records import ENDED, FINAL, RunRecord, RunState
from kdx.sweep.blocked import Pause
from kdx.sweep.decide import Action, Decision
from kdx.sweep.forecast import in_words, makespan
from kdx.sweep.pace import Pace
from kdx.tune.search import Searching

EVERY = 60.0
"""Seconds between two lines on the whole sweep, where there is no display."""
MOST_NAMED = 4
"""Active runs that such a line names."""
WIDEST, LEAST_BAR = 110, 10
"""Columns of the bars with all that stands beside them, at most, and of a bar alone, at least."""
IMPORTING = "importing torch"
FORECAST_EVERY = 1.0, 60.0
"""Seconds between two readings of how long runs take: at least, and at most."""

Expect = Callable[[], Mapping[str, float | None]]
"""Returns cell id → how many seconds a run of the cell takes, None if unknown."""


@dataclass
class Lines:
    """A listener that writes one line for each event."""

    plan: Plan | None
    """The plan that is run; None: whatever plans there are, which others announce."""
    search: Searching | None = None
    """The search whose trials are counted in place of runs."""
    workers: int = 1
    """How many runs are trained at a time."""
    expect: Expect = dict
    """Reads how long runs take."""
    expected: Mapping[str, float | None] = field(default_factory=dict)
    decisions: dict[RunKey, Decision] = field(default_factory=dict)
    """The last decision on each run that has not ended since."""
    total: int = 0
    """Number of runs."""
    counts: dict[str, int] = field(default_factory=dict)
    pauses: set[Pause] = field(default_factory=set)
    """Why runs are not started although nobody works on them."""
    evaluations: dict[str, int] = field(default_factory=dict)
    """How many evaluations of completed runs are made, to be made, or failed."""
    seconds: list[float] = field(default_factory=list)
    running: dict[RunKey, float] = field(default_factory=dict)
    steps: dict[RunKey, tuple[PlannedRun, int, float]] = field(default_factory=dict)
    """Active run → its last step, and the loss of that step."""
    ended_here: dict[int, RunState] = field(default_factory=dict)
    """Run → the state in which it ended last."""
    why_left: set[str] = field(default_factory=set)
    """Reasons to leave runs to others that were written."""

    def __post_init__(self) -> None:
        self._forecasts = Pace(*FORECAST_EVERY, time.monotonic)
        self._is_first = True
        self._summed_up = time.monotonic()

    def decided(self, decisions: tuple[Decision, ...]) -> None:
        """Count states; the first call writes the number of runs."""
        needed = [decision for decision in decisions if decision.needed]
        self.pauses = {decision.pause for decision in needed if decision.pause is not None}
        paused = sum(decision.pause is not None for decision in needed)
        open_ = [decision for decision in needed if decision.pause is None]
        states = Counter(decision.record.state if decision.record else RunState.PENDING for decision in open_)
        self.counts = {state.value: states[state] for state in RunState if states[state]}
        if paused:
            self.counts[PAUSED] = paused
        if len(needed) < len(decisions):
            self.counts[NOT_NEEDED] = len(decisions) - len(needed)
        self.evaluations = evaluation_counts(decisions)
        self.decisions = {decision.run.key: decision for decision in needed}
        if not self.expected or self._forecasts.due:
            with self._forecasts.keep():
                self.expected = self.expect()
        self.total = len(decisions)
        left = Counter(decision.left for decision in decisions if decision.left)
        for why, count in left.items():
            if why not in self.why_left:
                self.note(f"{count_of(count, 'run')} left to other workers: {why}")
        self.why_left |= set(left)
        if self._is_first and self.plan:
            self._is_first = False
            if self.search is not None:
                self.note(f"{self.plan.name}: a search of {self.whole_in_words()}")
                return
            ended = sum(states[state] for state in ENDED)
            before = f", {ended} already ended" if ended else ""
            to_make = self.evaluations.get("to make", 0)
            lacking = f"; {count_of(to_make, 'evaluation')} of completed runs to make" if to_make else ""
            rule = f", {self.plan.seed_rule}" if self.plan.seed_rule else ""
            self.note(f"{self.plan.name}: {count_of(len(decisions), 'run')}{rule}{before}{lacking}")

    def started(self, run: PlannedRun, attempt: int) -> None:
        self._begins(run)
        reason = f", {self.decisions[run.key].reason}" if run.key in self.decisions else ""
        self.note(f"started {run_name(run)}" + (f" (attempt {attempt}{reason})" if attempt > 1 else ""))

    def begins(self, run: PlannedRun, what: str) -> None:
        """Say nothing: a line has said that the run was started."""

    def progressed(self, run: PlannedRun, step: int, loss: float) -> None:
        """Write one line on the whole sweep now and then."""
        self.steps[run.key] = run, step, loss
        if time.monotonic() - self._summed_up >= EVERY:
            self._summed_up = time.monotonic()
            self.note(self.now())

    def whole_in_words(self) -> str:
        """Return how far the sweep is, in runs or in trials."""
        if self.search is not None:
            return f"{count_of(self.search.total, 'trial')}, {self.search.ended:,} of them ended"
        ended = sum(self.counts.get(state.value, 0) for state in ENDED)
        return f"{ended:,} of {count_of(self.total, 'run')} ended"

    def now(self) -> str:
        """Return how far the sweep is, and its active runs, in one line."""
        active = [
            f"{run_name(run)} at step {step:,} of {run.cell.spec.training.steps:,}, loss {rounded(loss, 'loss')}"
            for run, step, loss in self.steps.values()
        ]
        if len(active) > MOST_NAMED:
            active[MOST_NAMED - 1 :] = [f"and {len(active) - MOST_NAMED + 1} more"]
        left = self.left()
        time_left = f"; about {in_words(left)} left" if left is not None else ""
        return f"{self.whole_in_words()}, {len(self.steps)} running{time_left}: {'; '.join(active)}"

    def noted(self, run: PlannedRun, text: str) -> None:
        self.note(f"{run_name(run)} {text}")

    def ended(self, run: PlannedRun, record: RunRecord) -> None:
        """Write how a run ended, with its scores or the reason."""
        took = time.monotonic() - self.running.pop(run.key, time.monotonic())
        self.steps.pop(run.key, None)
        self.decisions.pop(run.key, None)
        self._moves(RunState.RUNNING, record.state)
        if record.state in (RunState.RUNNING, RunState.PENDING):
            self.note(f"another kdx has {run_name(run)} now")
            return
        self.ended_here[record.id] = record.state
        if record.state in FINAL:
            self.seconds.append(took)
        scores = ""
        if record.valid_score is not None:
            metric = run.cell.spec.selection[0].removeprefix("valid/")
            tested = "" if record.test_score is None else f", {rounded(record.test_score, metric)} test"
            scores = f": {metric} {rounded(record.valid_score, metric)} valid{tested}"
        reason = f": {record.error}" if record.error else ""
        self.note(f"{record.state.value} {run_name(run)}{reason or scores} ({took:.0f} s)")

    def evaluating(self, run: PlannedRun, count: int) -> None:
        self.running[run.key] = time.monotonic()
        self.note(f"evaluating {run_name(run)}: {count_of(count, 'evaluation')}")

    def evaluated(self, run: PlannedRun, missing: int, problem: str | None) -> None:
        """Write how making the evaluations of a run ended."""
        took = time.monotonic() - self.running.pop(run.key, time.monotonic())
        left = f", {count_of(missing, 'evaluation')} left" if missing else ""
        reason = f"; its process: {problem}" if problem else ""
        self.note(f"evaluated {run_name(run)}{left}{reason} ({took:.0f} s)")

    def host_lost(self, problem: str) -> None:
        self.note(f"{problem}, and all workers with it: starting another")

    def stopping(self) -> None:
        self.note("stopping at the next safe point; once more ends at once")

    def _begins(self, run: PlannedRun) -> None:
        self.running[run.key] = time.monotonic()
        decision = self.decisions.get(run.key)
        self._moves(decision.record.state if decision and decision.record else RunState.PENDING, RunState.RUNNING)

    def _moves(self, before: RunState, now: RunState) -> None:
        """Count a run in its new state."""
        self.counts = dict(Counter(self.counts) - Counter([before.value]) + Counter([now.value]))

    def killed(self) -> None:
        """Count as interrupted the runs that a second Ctrl-C has ended, which could not record it themselves."""
        evaluated = {key for key, decision in self.decisions.items() if decision.action is Action.EVALUATE}
        of_training = len(set(self.running) - evaluated)
        killed = min(of_training, self.counts.get("running", 0))
        self.counts = dict(Counter(self.counts) - Counter(running=killed) + Counter(interrupted=killed))

    def hung(self, run: PlannedRun, seconds: float) -> None:
        self.note(f"{run_name(run)} gave no sign of life for {seconds:.0f} s: ending it; its log.txt has the stacks")

    def note(self, text: str) -> None:
        """Write one line to stderr."""
        say(text)

    def left(self) -> float | None:
        """Return the seconds until the last run ends, if runs take as long as similar ones took; None if unknown."""
        known = [seconds for seconds in self.expected.values() if seconds is not None] or self.seconds
        if not known:
            return None
        usual = fmean(known)
        if self.search is not None:
            return self.search.runs_left * usual / self.workers
        here: list[float] = []
        elsewhere: list[float] = []
        waiting: list[float] = []
        for key, decision in self.decisions.items():
            if decision.trains or decision.action is Action.WAIT:
                rest = (self.expected.get(decision.run.cell.id) or usual) * (1.0 - self._done(decision))
                at_work = decision.action is Action.WAIT and not decision.awaits_look
                (here if key in self.running else elsewhere if at_work else waiting).append(rest)
        return makespan([*here, *elsewhere, *waiting], self.workers + len(elsewhere))

    def _done(self, decision: Decision) -> float:
        """Return the share of its steps that a run has done, or from which it will resume."""
        step = decision.first_step
        if decision.run.key in self.steps:
            step = self.steps[decision.run.key][1]
        elif decision.record and decision.action is Action.WAIT:
            step = decision.record.progress_step
        return min(1.0, step / decision.run.cell.spec.training.steps)


class _Name:
    """A name that loses words of its middle where its column is narrow."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, cells(self._name))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(shortened(self._name, options.max_width), no_wrap=True, overflow="ellipsis")


class _Names(ProgressColumn):
    def render(self, task: Task) -> _Name:
        return _Name(task.description)


class _Status(ProgressColumn):
    def render(self, task: Task) -> Text:
        return styled(task.fields["status"])


class _WithinEdge(Constrain):
    """Ends a little before the edge: what the terminal echoes of Ctrl-C would else break the last line, and a broken
    line stays on the screen."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Constrain(self.renderable, min(options.max_width - len("^C"), WIDEST))


class _Bars(Progress):
    def get_renderables(self) -> Iterator[RenderableType]:
        yield from map(_WithinEdge, super().get_renderables())


class Live(Lines):
    """A listener with bars at the foot of the terminal: the whole sweep, then each active run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.console = Console(stderr=True, theme=Theme(BARS))
        whole = Column(no_wrap=True)
        self.bars = _Bars(
            _Names(),
            BarColumn(bar_width=None, table_column=Column(ratio=1, width=LEAST_BAR)),
            MofNCompleteColumn(table_column=whole),
            _Status(table_column=whole),
            TimeElapsedColumn(table_column=whole),
            console=self.console,
            refresh_per_second=4,
            expand=True,
            transient=True,
        )
        name, runs = (self.plan.name, len(self.plan.runs)) if self.plan else ("worker", 0)
        total = self.search.total if self.search else runs
        self.whole = self.bars.add_task(sanitize_lines(name), total=total, status="")
        self.tasks: dict[RunKey, TaskID] = {}
        self.about = ""
        """The time left at the last look at all runs."""
        self._first_word = IMPORTING
        """What a run does of which nothing was heard yet: until one was, the process is imported that all come from."""

    def decided(self, decisions: tuple[Decision, ...]) -> None:
        super().decided(decisions)
        ended, total = self._ended(), self.total
        if self.search is not None:
            ended, total = self.search.ended, self.search.total
        left = self.left() if self.tasks else None
        self.about = f", about {in_words(left)} left" if left is not None else ""
        self.bars.update(self.whole, completed=ended, total=total)
        self._show_running()

    def started(self, run: PlannedRun, attempt: int) -> None:
        if attempt > 1:
            super().started(run, attempt)  # since its bar does not show why it was interrupted
        else:
            self._begins(run)
        steps, decision = run.cell.spec.training.steps, self.decisions.get(run.key)
        done = round(self._done(decision) * steps) if decision else 0
        self._add(run, total=steps, completed=done, status=self._first_word)

    def begins(self, run: PlannedRun, what: str) -> None:
        self._first_word = "starting"
        if run.key in self.tasks:
            self.bars.update(self.tasks[run.key], status=what)

    def progressed(self, run: PlannedRun, step: int, loss: float) -> None:
        self.steps[run.key] = run, step, loss
        if run.key in self.tasks:
            self.bars.update(self.tasks[run.key], completed=step, status=f"loss {rounded(loss, 'loss')}")

    def ended(self, run: PlannedRun, record: RunRecord) -> None:
        self._remove(run.key)
        super().ended(run, record)
        if self.search is None:
            self.bars.update(self.whole, completed=self._ended())

    def evaluating(self, run: PlannedRun, count: int) -> None:
        self.running[run.key] = time.monotonic()
        self._add(run, total=None, completed=0, status=count_of(count, "evaluation"))

    def evaluated(self, run: PlannedRun, missing: int, problem: str | None) -> None:
        self._remove(run.key)
        super().evaluated(run, missing, problem)

    def killed(self) -> None:
        super().killed()
        for key in list(self.tasks):
            self._remove(key)

    def _ended(self) -> int:
        return sum(self.counts.get(state, 0) for state in (*(state.value for state in ENDED), NOT_NEEDED, PAUSED))

    def _add(self, run: PlannedRun, *, total: int | None, completed: int, status: str) -> None:
        name = run_name(run).partition(" ")[2]  # the id would take the room of what tells runs apart
        self.tasks[run.key] = self.bars.add_task(name, total=total, completed=completed, status=status)
        self._show_running()

    def _show_running(self) -> None:
        self.bars.update(self.whole, status=f"{len(self.tasks)} running{self.about}")

    def _remove(self, key: RunKey) -> None:
        if key in self.tasks:
            self.bars.remove_task(self.tasks.pop(key))
            self._show_running()

    def note(self, text: str) -> None:
        columns = self.console.width if self.console.is_terminal else None
        for line in folded(sanitize_lines(text), columns):
            self.console.print(styled(line), soft_wrap=True)


def evaluation_counts(decisions: tuple[Decision, ...]) -> dict[str, int]:
    """Return how many evaluations of completed runs are made, to make, failed, or impossible without weights."""
    counts: Counter[str] = Counter()
    for decision in decisions:
        if decision.record and decision.record.state is RunState.COMPLETED:
            counts["made"] += decision.evaluations - len(decision.missing) - decision.failed
            counts["to make"] += len(decision.to_make)
            counts["without weights"] += decision.lost
            counts["failed"] += decision.failed
    return {name: count for name, count in counts.items() if count}


@contextmanager
def progress(
    plan: Plan | None, search: Searching | None = None, *, workers: int = 1, expect: Expect = dict
) -> Iterator[Lines]:
    """Show progress as fits stderr; see `Lines`."""
    if not sys.stderr.isatty():
        yield Lines(plan, search, workers, expect)
        return
    live = Live(plan, search, workers, expect)
    waits_for("")
    with live.bars:
        yield live
