"""The notes below a table's numbers: the selection rule, n, the splits, and what its words mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdx.grid.plan import Shown
from kdx.grid.seeds import SeedRule
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import PRUNED, UNDERTRAINED, State
from kdx.report.selection.searched import SearchedCell, searches_without_winner
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.store.records import Provenance, SweepRecord
from kdx.vocabulary import Direction

_GOOD = {Direction.MAX: "higher is better", Direction.MIN: "lower is better"}
_MEANINGS = {
    State.DIVERGED: "diverged k/n: the loss of k of n seeds is not finite, or ended above where it began",
    State.OUT_OF_MEMORY: "out of memory k/n: the memory of k of n seeds did not suffice",
    State.FAILED: "failed k/n: k of n seeds ended with an error",
    State.HOLE: "–: no score yet",
    PRUNED: "pruned k/n: k of n seeds were stopped after a validation, before their last step; they have no test "
    "score, and no mean counts them",
    State.INVALIDATED: "invalidated k/n: somebody took the runs of k of n seeds out of tables, with kdx invalidate; "
    "no score and no mean counts them",
    UNDERTRAINED: "undertrained k/n: k of n seeds predict the validation set no better than the frequencies of its "
    "tokens do (the unigram distribution of the training set), so their scores say little",
}
"""What stands in the place of a score, or behind one → its meaning."""


CONDITIONAL = (
    "another search would find others, which no interval allows for: two cells that are equally good when tuned well "
    "can differ in 5 to 18% of searches (3 to 10 seeds)"
)
"""What a search does to every interval and verdict of the cells that it found."""
_MOST_NAMED = 4
"""A note names up to so many cells; where there are more, it gives their number."""
_EVALUATED = (
    "Scores are those of evaluations, made of the trained weights; weights and seeds were chosen within the training."
)


def notes(layout: Layout) -> tuple[str, ...]:
    """The sentences that explain the numbers of a table."""
    cells = layout.cells
    if not cells:
        return ()
    selected_by: dict[str, dict[str, None]] = {}
    for cell in cells:
        selected_by.setdefault(cell.selected_by.name, {})[layout.records[cell.id].spec.task] = None
    if len(selected_by) == 1:
        rule = next(iter(selected_by))
    else:
        rule = " or ".join(f"{name} ({', '.join(of)})" for name, of in selected_by.items())
    by_own_score = any(cell.metric == cell.selected_by for cell in cells)
    split = "validation" if by_own_score else "test"
    if layout.shown is Shown.BEST_SEED:
        sentences = [f"Per cell, the {split} score of the seed with the best {rule}{_over_seeds(layout)}."]
    else:
        sentences = [
            f"Per cell, the mean {split} score over seeds ± half of its 95% interval by Student's t{_number(layout)}; "
            f"each run's weights are those of its best {rule}."
        ]
    if layout.evaluations:
        sentences.append(_EVALUATED)
    if by_own_score:
        chosen = "Seed and weights were" if layout.shown is Shown.BEST_SEED else "Weights were"
        sentences.append(f"{chosen} chosen by this very score, which flatters it.")
    # An error of some seeds of a cell speaks for itself.
    counted = {word for cell in cells for word in cell.counts} - {State.OUT_OF_MEMORY, State.FAILED}
    shown = {cell.state for cell in cells} | counted
    sentences += [f"{text}." for word, text in _MEANINGS.items() if word in shown]
    return tuple(sentences)


def seeds_by_rule(layout: Layout, differences: Sequence[Difference], rule: SeedRule) -> Iterator[str]:
    """The sentences on the rule by which cells have seeds, and on what it left open."""
    yield (
        f"Each cell has {rule.number}: another was added while its comparison with a baseline was open, with a look "
        "after each. Intervals, marks and p-values are over the seeds of the last look and allow for all looks, which "
        "together err with at most 5% (group-sequential t-tests whose levels rise as the cube of the number of seeds; "
        "Jennison & Turnbull 1989)."
    )
    if layout.shown is Shown.BEST_SEED:
        yield "The best of more seeds is better by chance alone: compare cells by their means."
    followed = [(one, one.followed) for one in differences if one.followed]
    if without := _named(layout, [one.at for one, its in followed if not its.decided and its.n == rule.max]):
        yield f"Not decided after {rule.max} seeds, the most: {without}."
    if still := _named(layout, [one.at for one, its in followed if its.open]):
        yield f"Not decided yet: {still}."


def seeds_raised(sweep: SweepRecord) -> Iterator[str]:
    """The warnings where seeds were added by hand once results could be read."""
    for one in sweep.joins or (sweep,):
        if one.seeds_raised and "seed_rule" not in one.grid:
            of = f" of {one.name}" if sweep.joins else ""
            yield (
                f"Seeds{of} were raised from {' to '.join(map(str, one.seeds_raised))} when results could be read, "
                "which intervals, marks and p-values do not allow for; seeds: {min: …, max: …, until: decided} would."
            )


def without_one_rule(sweep: SweepRecord) -> Iterator[str]:
    """The warning where some of several sweeps had seeds added by a rule, and others did not, or by another one."""
    if by_rule := [one.name for one in sweep.joins if "seed_rule" in one.grid]:
        yield (
            f"Seeds of {', '.join(by_rule)} were added until something was decided, which intervals, marks and "
            "p-values here do not allow for: they err more often than 5%."
        )


def _named(layout: Layout, places: Sequence[Address]) -> str:
    """Cells by the words of their row and column, or their number where they are many."""
    if len(places) > _MOST_NAMED:
        return f"{len(places)} cells"
    return ", ".join(" / ".join((*layout.rows[row], *layout.columns[column])) for row, column in places)


def of_sweeps(layout: Layout, sweep: SweepRecord) -> Iterator[str]:
    """The sweeps that plan the cells, where several are joined."""
    if len(sweep.joins) > 1:
        shown = {name for record in layout.records.values() for name in record.sweeps}
        of = [one.name for one in sweep.joins if one.name in shown]
        yield f"Cells are of the sweep{'s' if len(of) > 1 else ''} {' and '.join(of)}."


def of_searches(layout: Layout, sweep: SweepRecord, searches: Mapping[Address, SearchedCell]) -> Iterator[str]:
    """How the settings of cells were found, and the searches that are not done."""
    distinct = list(searches.values())
    if distinct:
        cells = (
            "Each cell's settings are"
            if len(searches) == len(layout.places)
            else f"Settings of {_named(layout, list(searches))} are"
        )
        budgets = dict.fromkeys(one.search.tuning.trials for one in distinct)
        metrics = dict.fromkeys(one.metric.name for one in distinct)
        names = dict.fromkeys(name for one in distinct for name in one.search.space)
        yield (
            f"{cells} those of the best of {' or '.join(map(str, budgets))} trials by {' or '.join(metrics)}, over "
            f"{', '.join(names)}; no trial is in the table. "
            f"{CONDITIONAL[0].upper()}{CONDITIONAL[1:]}."
        )
    for record, ended in searches_without_winner(sweep):
        name = " / ".join(record.labels.values()) or f"search {record.id[:8]}"
        trials = record.search["tuning"]["trials"]
        if ended < trials:
            yield f"The search of {name} is not done, so it is not in the table: {ended} of {trials} trials have ended."
        else:
            yield f"The search of {name} has no winner, so it is not in the table: none of {trials} trials completed."


def definitions(layout: Layout, provenance: Mapping[int, Provenance]) -> tuple[str, ...]:
    """The sentences on each metric: its better direction, and how it was computed, as the runs recorded it.

    Args:
        provenance: run id → what it was computed from, with the definitions of its metrics.
    """
    metrics = dict.fromkeys(cell.metric for cell in layout.cells)
    sentences = [f"{'; '.join(f'{metric}: {_GOOD[metric.direction]}' for metric in metrics)}."] if metrics else []
    sentences += [f"{metric.name}: {text}." for metric in metrics for text in _definitions(layout, metric, provenance)]
    return tuple(sentences)


def _over_seeds(layout: Layout) -> str:
    values = [cell for cell in layout.cells if cell.value is not None]
    if not values:
        return ""
    if layout.n == 1:
        return _number(layout)
    spread = "; beside it mean ± standard deviation over "
    if layout.n is None:
        return f"{spread}seeds, and their number n in parentheses"
    return spread + _number(layout).removeprefix("; ")


def _number(layout: Layout) -> str:
    values = [cell for cell in layout.cells if cell.value is not None]
    if not values:
        return ""
    if layout.n is None:
        return ", their number n in parentheses"
    planned = {cell.planned for cell in values}
    of = "" if planned == {layout.n} else f" of {planned.pop()}" if len(planned) == 1 else ""
    return f"; n = {layout.n}{of} seed{'s' if of or layout.n > 1 else ''}"


def _definitions(layout: Layout, metric: Metric, provenance: Mapping[int, Provenance]) -> Iterable[str]:
    """How the metric was made, as the runs recorded it; several where they do not agree."""
    if layout.evaluations:
        made = (
            one for cell in layout.cells if cell.metric == metric for one in layout.evaluations[cell.id].made.values()
        )
        of_each = ((one.definitions or {}).get(metric.name) for one in made)
        return dict.fromkeys(text for text in of_each if text)
    runs = (seed.run_id for cell in layout.cells if cell.metric == metric for seed in cell.seeds)
    # Runs share their origins; each origin counts once.
    origins = {id(one): one for run in runs if (one := provenance.get(run))}.values()
    defined = ((one.definitions or {}).get(metric.recorded) for one in origins)
    return dict.fromkeys(text for text in defined if text)
