"""What a table says of itself below its numbers: the selection rule, n, the splits, and how the metrics are made."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kdx.axes import Direction
from kdx.grid.plan import Shown
from kdx.report.cells import Metric, State
from kdx.store.records import Provenance

if TYPE_CHECKING:
    from kdx.report.table import Table

_GOOD = {Direction.MAX: "higher is better", Direction.MIN: "lower is better"}
_WITHOUT_SCORE = {
    State.NOT_CONVERGE: "not converge (k/n): k of n seeds diverged",
    State.OUT_OF_MEMORY: "out of memory (k/n): the memory of k of n seeds did not suffice",
    State.FAILED: "failed (k/n): k of n seeds ended with an error",
    State.HOLE: "–: no score yet",
}


def notes(table: "Table", tasks: Mapping[str, str], provenance: Mapping[int, Provenance]) -> tuple[str, ...]:
    """The caption's sentences.

    Args:
        tasks: cell id → task.
        provenance: run id → what it was computed from, with the definitions of its metrics.
    """
    cells = table.cells
    if not cells:
        return ()
    selected_by: dict[str, dict[str, None]] = {}
    for cell in cells:
        selected_by.setdefault(cell.selected_by.name, {})[tasks[cell.id]] = None
    if len(selected_by) == 1:
        rule = next(iter(selected_by))
    else:
        rule = " or ".join(f"{name} ({', '.join(of)})" for name, of in selected_by.items())
    by_own_score = any(cell.metric == cell.selected_by for cell in cells)
    split = "validation" if by_own_score else "test"
    if table.shown is Shown.BEST_SEED:
        told = [f"Per cell, the {split} score of the seed with the best {rule}{_over_seeds(table)}."]
    else:
        told = [
            f"Per cell, the mean {split} score over seeds ± half of its 95% interval by Student's t{_number(table)}; "
            f"each run's weights are those of its best {rule}."
        ]
    if by_own_score:
        chosen = "Seed and weights were" if table.shown is Shown.BEST_SEED else "Weights were"
        told.append(f"{chosen} chosen by this very score, which flatters it.")
    metrics = dict.fromkeys(cell.metric for cell in cells)
    told.append(f"{'; '.join(f'{metric}: {_GOOD[metric.direction]}' for metric in metrics)}.")
    told += [f"{metric.name}: {text}." for metric in metrics for text in _definitions(table, metric, provenance)]
    shown = {cell.state for cell in cells} | {State.NOT_CONVERGE for cell in cells if cell.diverged}
    told += [f"{text}." for state, text in _WITHOUT_SCORE.items() if state in shown]
    return tuple(told)


def _over_seeds(table: "Table") -> str:
    values = [cell for cell in table.cells if cell.value is not None]
    if not values:
        return ""
    if table.n == 1:
        return _number(table)
    spread = "; beside it mean ± standard deviation over "
    if table.n is None:
        return f"{spread}seeds, and their number n in parentheses"
    return spread + _number(table).removeprefix("; ")


def _number(table: "Table") -> str:
    values = [cell for cell in table.cells if cell.value is not None]
    if not values:
        return ""
    if table.n is None:
        return ", their number n in parentheses"
    planned = {cell.planned for cell in values}
    of = "" if planned == {table.n} else f" of {planned.pop()}" if len(planned) == 1 else ""
    return f"; n = {table.n}{of} seed{'s' if of or table.n > 1 else ''}"


def _definitions(table: "Table", metric: Metric, provenance: Mapping[int, Provenance]) -> Iterable[str]:
    """How the metric was made, as the runs recorded it; several where they do not agree."""
    runs = (seed.run_id for cell in table.cells if cell.metric == metric for seed in cell.seeds)
    # Runs share their origins; each is looked at once.
    origins = {id(one): one for run in runs if (one := provenance.get(run))}.values()
    defined = ((one.definitions or {}).get(metric.recorded) for one in origins)
    return dict.fromkeys(text for text in defined if text)
