"""The notes below a table's numbers: the selection rule, n, the splits, and what its words mean."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kdx.grid.plan import Shown
from kdx.grid.seeds import SeedRule
from kdx.grid.table_layout import Address
from kdx.report.selection.cells import PRUNED, UNDERTRAINED, State
from kdx.report.selection.searched import SearchedCell, searches_without_winner
from kdx.report.statistics.by_document import over
from kdx.report.statistics.metric import Metric
from kdx.report.table.comparisons import Difference
from kdx.report.table.layout import Layout
from kdx.report.wording import in_levels, what_sets_apart
from kdx.store.records import Provenance, SweepRecord, TrialState
from kdx.tasks.definition import Per
from kdx.vocabulary import Direction, Split, VocabularyKind

_GOOD = {Direction.MAX: "higher is better", Direction.MIN: "lower is better"}
_MEANINGS = {
    State.DIVERGED: "diverged k/n: the loss of k of n seeds is not finite, or ended above 1.25 times that of the "
    "first step",
    State.OUT_OF_MEMORY: "out of memory k/n: the memory of k of n seeds did not suffice",
    State.FAILED: "failed k/n: k of n seeds ended with an error",
    State.MISSING: "–: no score yet",
    PRUNED: "pruned k/n: k of n seeds were stopped after a validation, before their last step; they have no test "
    "score, and no mean counts them",
    State.INVALIDATED: "invalidated k/n: the runs of k of n seeds were excluded from reports with kdx invalidate; "
    "no score and no mean counts them",
    UNDERTRAINED: "undertrained k/n: k of n seeds predict the validation set no better than the frequencies of its "
    "tokens do (the unigram distribution of the training set), so their scores say little",
}
"""What stands in the place of a score, or behind one → its meaning."""


CONDITIONAL = (
    "another search would find other settings, which no interval allows for: in a simulation with 10 trials and one "
    "tuning seed, two cells that are equally good when tuned well appeared different in 5 to 18% of searches (3 to 10 "
    "seeds)"
)
"""What a search does to every interval and verdict of the cells that it found."""
_MOST_NAMED = 4
"""The most cells that a note names; of more, it gives the number."""


def notes(
    layout: Layout,
    sweep: SweepRecord,
    differences: Sequence[Difference] = (),
    rule: SeedRule | None = None,
    searches: Mapping[Address, SearchedCell] = MappingProxyType({}),
) -> Iterator[str]:
    """The sentences that explain the numbers of a table.

    Args:
        rule: what decides how many seeds a cell has, if a rule does.
        searches: place → the search that found its cell.
    """
    if layout.cells:
        yield from _on_scores(layout)
    if len(sweep.joins) > 1:
        planned = {name for record in layout.records.values() for name in record.sweeps}
        names = [part.name for part in sweep.joins if part.name in planned]
        yield f"Cells are of the sweep{'s' if len(names) > 1 else ''} {' and '.join(names)}."
    if sweep.grid.get("evaluations") and not sweep.grid.get("tables"):
        yield "Evaluations are not in this table; tables: [{name: …, rows: …, columns: evaluation}] shows them."
    if searches:
        yield _on_searches(layout, searches)
    for record, ended in searches_without_winner(sweep):
        name = " / ".join(record.labels.values()) or f"search {record.id[:8]}"
        trials = record.wanted
        if ended < trials:
            yield f"The search of {name} is not done, so it is not in the table: {ended} of {trials} trials have ended."
        elif TrialState.COMPLETED in record.ended:
            yield f"The search of {name} is done, but its best trial is not planned yet: run its sweep again."
        else:
            yield f"The search of {name} has no winner, so it is not in the table: none of {trials} trials completed."
    if rule:
        yield from _on_rule(layout, differences, rule)
    elif by_rule := [part.name for part in sweep.joins if "seed_rule" in part.grid]:
        yield (
            f"Seeds of {', '.join(by_rule)} were added until something was decided, which intervals, marks and "
            "p-values here do not allow for: they are wrong more often than in 5% of cases."
        )
    for part in sweep.joins or (sweep,):
        if part.seeds_raised and "seed_rule" not in part.grid:
            yield (
                f"Seeds{f' of {part.name}' if sweep.joins else ''} were raised from "
                f"{' to '.join(map(str, part.seeds_raised))} when results could be read, which intervals, marks and "
                "p-values do not allow for; seeds: {min: …, max: …, until: decided} would."
            )


def definitions(layout: Layout, provenance: Mapping[int, Provenance]) -> Iterator[str]:
    """The sentences on each metric: its better direction, and how it was computed, as the runs recorded it.

    Args:
        provenance: run id → what it was computed from, with the definitions of its metrics.
    """
    texts: dict[Metric, dict[str, list[dict[str, str]]]] = {cell.metric: {} for cell in layout.cells}
    for at, cell in layout.places.items():
        evaluated = layout.evaluations.get(cell.id)
        if evaluated:
            recorded = [(each.definitions or {}).get(cell.metric.name) for each in evaluated.by_run.values()]
        else:
            origins = (provenance.get(seed.run_id) for seed in cell.seeds)
            recorded = [(origin.definitions or {}).get(cell.metric.recorded) for origin in origins if origin]
        for text in dict.fromkeys(text for text in recorded if text):
            texts[cell.metric].setdefault(text, []).append(layout.header(at))
    if texts:
        yield f"{'; '.join(f'{metric}: {_GOOD[metric.direction]}' for metric in texts)}."
    for metric, several in texts.items():
        for text, headers in several.items():
            others = [header for other in several if other != text for header in several[other]]
            which = in_levels(what_sets_apart(headers, others))
            yield f"{metric.name}{f' ({which})' if which else ''}: {text}."


def _on_scores(layout: Layout) -> Iterator[str]:
    """How each score was selected, and what stands in the place of one."""
    cells = layout.cells
    tasks: dict[str, dict[str, None]] = {}
    for cell in cells:
        tasks.setdefault(cell.selected_by.name, {})[layout.records[cell.id].spec.task] = None
    rule = " or ".join(f"{name} ({', '.join(known)})" if len(tasks) > 1 else name for name, known in tasks.items())
    by_own_score = any(cell.metric == cell.selected_by for cell in cells)
    split = "validation " if by_own_score else "" if layout.evaluations else "test "
    if layout.shown is Shown.BEST_SEED:
        yield f"Per cell, the {split}score of the seed with the best {rule}{_over_seeds(layout)}."
    else:
        errors = dict.fromkeys(over(cell.documents) for cell in cells if cell.half_width is not None)
        spread = f" ± half the width of its 95% interval by Student's t over {' or '.join(errors)}" if errors else ""
        weights = f"each run's weights are those of its best {rule}"
        yield f"Per cell, the mean {split}score{spread}{_number(layout)}; {weights}."
    of_pieces = {
        cell.metric.unit: None
        for cell in cells
        if cell.metric.measure.per is Per.TOKEN
        and layout.records[cell.id].spec.value("data.vocabulary") in (VocabularyKind.BPE, VocabularyKind.SUBWORD_NMT)
    }
    if of_pieces:
        yield f"{', '.join(of_pieces)}: per byte-pair token, not per word."
    if layout.evaluations:
        yield (
            "Scores are those of evaluations, made of the trained weights; weights and seeds were chosen within the "
            "training."
        )
        evaluations = [layout.evaluations[cell.id].evaluation for cell in cells if cell.id in layout.evaluations]
        if any(each.settings.get("split") == Split.VALID and each.other_corpus is None for each in evaluations):
            yield "The validation split chose weights and seeds, which flatters its scores."
    if by_own_score:
        chosen = "Seed and weights were" if layout.shown is Shown.BEST_SEED else "Weights were"
        yield f"{chosen} chosen by this very score, which flatters it."
    # An error of some seeds of a cell speaks for itself.
    counted = {word for cell in cells for word in cell.counts} - {State.OUT_OF_MEMORY, State.FAILED}
    shown = {cell.state for cell in cells} | counted
    yield from (f"{text}." for word, text in _MEANINGS.items() if word in shown)


def _on_rule(layout: Layout, differences: Sequence[Difference], rule: SeedRule) -> Iterator[str]:
    """The rule by which cells have seeds, and what it left open."""
    yield (
        f"Each cell has {rule.number}: another was added while its comparison with a baseline was open, with a look "
        "after each. Differences, intervals, marks and p-values are over the seeds of the last look and allow for all "
        "looks, which together are wrong with at most 5% probability (group-sequential t-tests whose levels rise as "
        "the cube of the number of seeds; Jennison & Turnbull 1989)."
    )
    if layout.shown is Shown.BEST_SEED:
        yield "The best of more seeds is better by chance alone: compare cells by their means."
    followed = {difference.at: difference.followed for difference in differences if difference.followed}
    undecided = [at for at, course in followed.items() if not course.decided and course.n == rule.max]
    if undecided:
        yield f"Not decided after {rule.max} seeds, the most: {_named(layout, undecided)}."
    if still_open := [at for at, course in followed.items() if course.open]:
        yield f"Not decided yet: {_named(layout, still_open)}."


def _on_searches(layout: Layout, searches: Mapping[Address, SearchedCell]) -> str:
    """How the settings of cells were found."""
    every = len(searches) == len(layout.places)
    cells = "Each cell's settings are" if every else f"Settings of {_named(layout, list(searches))} are"
    budgets = dict.fromkeys(str(searched.search.tuning.trials) for searched in searches.values())
    metrics = dict.fromkeys(searched.metric.name for searched in searches.values())
    names = dict.fromkeys(name for searched in searches.values() for name in searched.search.space)
    return (
        f"{cells} those of the best of {' or '.join(budgets)} trials by {' or '.join(metrics)}, over "
        f"{', '.join(names)}; no trial is in the table. {CONDITIONAL[0].upper()}{CONDITIONAL[1:]}."
    )


def _named(layout: Layout, places: Sequence[Address]) -> str:
    """Cells by the words of their row and column, or their number where they are many."""
    if len(places) > _MOST_NAMED:
        return f"{len(places)} cells"
    return ", ".join(map(layout.place, places))


def _over_seeds(layout: Layout) -> str:
    if layout.n == 1 or all(cell.value is None for cell in layout.cells):
        return _number(layout)
    number = "seeds, and their number n in parentheses" if layout.n is None else _number(layout).removeprefix("; ")
    return f"; beside it mean ± standard deviation over {number}"


def _number(layout: Layout) -> str:
    planned = {cell.planned for cell in layout.cells if cell.value is not None}
    if not planned:
        return ""
    if layout.n is None:
        return ", their number n in parentheses"
    of_planned = "" if planned == {layout.n} or len(planned) > 1 else f" of {planned.pop()}"
    return f"; n = {layout.n}{of_planned} seed{'s' if of_planned or layout.n > 1 else ''}"
