"""What `kdx plan` shows of searches: what they will train before the winners, and how long both will take."""

from collections.abc import Iterator, Mapping

from kdx.cli.wording import count_of
from kdx.grid.plan import Plan, PlannedCell
from kdx.grid.tuning import Tuning
from kdx.store.database import Database
from kdx.sweep.forecast import in_words, makespan
from kdx.sweep.plan_forecast import expected_seconds
from kdx.tune.search import Searching


def search_lines(plan: Plan, database: Database | None, at_a_time: int) -> Iterator[str]:
    """Return what is searched before winners are trained, and how long both will take, in one line each."""
    cells = [cell for cell in plan.cells if cell.search and not cell.won]
    by_search = {cell.search.id: cell for cell in cells if cell.search}
    if not by_search:
        return
    ended = dict.fromkeys(by_search, 0)
    seconds: Mapping[str, float | None] = {}
    if database is not None:
        search = Searching(database, plan)
        search.look()
        ended = {key: len(search.trials(key)) for key in by_search}
        seconds = expected_seconds(database, plan)
    tunings = {key: _tuning_of(cell) for key, cell in by_search.items()}
    left = [
        (cell, max(0, tunings[key].trials - ended[key]) * len(tunings[key].seeds)) for key, cell in by_search.items()
    ]
    steps = sum(count * cell.spec.training.steps for cell, count in left)
    tuning = _tuning_of(cells[0])
    done = f", of which {sum(ended.values())} have ended" if any(ended.values()) else ""
    seeds = count_of(len(tuning.seeds), "tuning seed")
    yield (
        f"first a search: {count_of(len(by_search), 'cell')} × {tuning.trials} trials × {seeds}{done}; "
        f"{sum(count for _, count in left):,} runs to train, {steps:,} steps at most by the grid's steps "
        f"({tuning.sampler}, pruner {tuning.pruner})"
    )
    runs = count_of(len(cells) * len(plan.seeds), "run")
    seeds = count_of(len(plan.seeds), "seed")
    if rule := plan.seed_rule:
        runs, seeds = f"{len(cells) * rule.min} to {runs}", rule.number
    yield f"then {count_of(len(cells), 'winner')} × {seeds} = {runs}"
    known = {cell.id: time for cell in cells if (time := seconds.get(cell.id)) is not None}
    if not known:
        yield "time of both: unknown, for no like run has completed"
        return
    of_search = [known[cell.id] for cell, count in left if cell.id in known for _ in range(count)]
    of_winners = [known[cell.id] for cell in cells if cell.id in known for _ in plan.seeds]
    missing = len({cell.id for cell in cells}) - len(known)
    at_most = " at most" if plan.seed_rule else ""
    yield (
        f"time: the search {in_words(makespan(of_search, at_a_time))} at most, the winners "
        f"{in_words(makespan(of_winners, at_a_time))}{at_most}, with {count_of(at_a_time, 'run')} at a time"
        + (f"; {missing} of {len(by_search)} cells are not in it, for no like run has completed" if missing else "")
    )


def _tuning_of(cell: PlannedCell) -> Tuning:
    assert cell.search is not None
    return cell.search.tuning
