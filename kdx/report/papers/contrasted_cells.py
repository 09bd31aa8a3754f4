"""Finds the cells that a contrast compares in each setting: pairs that agree in all factors it does not name."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, hypot
from typing import NamedTuple

from kdx.grid.cell_selector import default_word, factors, in_layer
from kdx.grid.seeds import SeedRule, rule_of
from kdx.grid.table_layout import is_of_evaluation
from kdx.grid.words import known_options
from kdx.report.papers.paper_file import Contrast
from kdx.report.selection.best_seed import by_cell
from kdx.report.selection.cells import Cell, cell_of
from kdx.report.selection.evaluated import EvaluatedCell, evaluated_cells
from kdx.report.selection.searched import searched_cells
from kdx.report.statistics.by_document import ByDocument, together
from kdx.report.statistics.estimates import Estimate, Summary, contrast, summarise
from kdx.report.statistics.looks import Look
from kdx.report.statistics.metric import Metric
from kdx.store.records import CellRecord, SweepRecord
from kdx.words import table

_SEARCHED = "searched"
_SETTING = ("task", "data.", "model.", "training.", "evaluation.")
SHOWN_FACTORS = ("task", "data.corpus", "model.width", "training.steps")
"""The factors by which a setting is shown; several that are alike in these are shown with what differs, too."""


class Candidate(NamedTuple):
    """A cell with a run that has ended, as a contrast compares it."""

    record: CellRecord
    cell: Cell
    words: Mapping[str, str]
    """Factor → word, without options that the cell lacks; a factor that a search chose, and that the contrast does not
    name, is `searched` in all of them."""
    sides: tuple[int, ...]
    """The sides that it is of: 0 for a, 1 for b."""
    searched: bool


class RecordedRuns:
    """The cells of several sweeps, each once, with their runs in all of them, and the evaluations of these."""

    def __init__(self, sweeps: Sequence[SweepRecord]) -> None:
        self._metrics = {run: metrics for sweep in sweeps for run, metrics in sweep.metrics.items()}
        self._documents = {run: sums for sweep in sweeps for run, sums in sweep.documents.items()}
        self._runs = by_cell({run.id: run for sweep in sweeps for run in sweep.runs}.values())
        self._rules: dict[str, SeedRule] = {}
        self._searched: dict[str, set[frozenset[str]]] = {}
        self._evaluated: dict[str, EvaluatedCell] = {}
        for sweep in sweeps:
            for evaluated in evaluated_cells(sweep):
                earlier = self._evaluated.get(evaluated.record.id, evaluated)
                by_run = {**earlier.by_run, **evaluated.by_run}
                self._evaluated[evaluated.record.id] = replace(evaluated, by_run=by_run)
            winners, rule = searched_cells(sweep), rule_of(sweep.grid)
            for cell in sweep.cells:
                # A cell that one sweep searched and another planned is compared with both kinds.
                space = frozenset(winners[cell.id].search.space) if cell.id in winners else frozenset[str]()
                self._searched.setdefault(cell.id, set()).add(space)
                if rule:
                    # Of several rules the one with the most looks, which allows for those of the others.
                    rules = (rule, self._rules.get(cell.id, rule))
                    self._rules[cell.id] = max(rules, key=lambda rule: rule.max - rule.min)
        self._records = {cell.id: cell for sweep in sweeps for cell in sweep.cells}
        self._cells: dict[tuple[str, str | None], Cell | None] = {}
        recorded = dict.fromkeys(factor for record in self._records.values() for factor in record.spec.words)
        others = tuple(factor for factor in recorded if factor not in factors())
        # Other factors than those of kdx are options, of custom words or of one layer's; a choice of one layer is none.
        layers = {factor: in_layer(factor) for factor in others}
        own = (factor for factor, (layer, name) in layers.items() if not layer or name in known_options())
        self.options = frozenset((*known_options(), *own))
        """The options of words, which a cell without such a word lacks."""
        self.factors = (*factors(), *others)

    def candidates(self, contrast: Contrast) -> Iterator[Candidate]:
        """The cells of both sides of which a run has ended; evaluations are, if it names a setting of theirs."""
        records = list(self._records.values())
        if any(map(is_of_evaluation, (*contrast.where, *contrast.factors))):
            records += [evaluated.record for evaluated in self._evaluated.values()]
        for record in records:
            spec = record.spec
            both = enumerate((contrast.a, contrast.b))
            sides = tuple(index for index, side in both if spec.matches({**contrast.where, **side}))
            cell = self._cell(record, contrast.metric) if sides else None
            if cell is None or not (cell.scores or lost_runs(cell)):
                continue
            words = {
                factor: word
                for factor, word in spec.words.items()
                if factor not in self.options or spec.value(factor) is not None
            }
            evaluated = self._evaluated.get(record.id)
            spaces = self._searched[evaluated.cell_id if evaluated else record.id]
            for chosen in {space.difference(contrast.factors, contrast.where) for space in spaces}:
                as_searched = {**words, **dict.fromkeys(chosen, _SEARCHED)}
                yield Candidate(record, cell, as_searched, sides, any(spaces))

    def _cell(self, record: CellRecord, metric: str | None) -> Cell | None:
        key = record.id, metric
        if key not in self._cells:
            evaluated = self._evaluated.get(record.id)
            trained = evaluated.cell_id if evaluated else record.id
            self._cells[key] = cell_of(
                evaluated or record,
                self._runs.get(trained, ()),
                self._metrics,
                self._documents,
                metric=metric,
                seed_rule=self._rules.get(trained),
            )
        return self._cells[key]


@dataclass(frozen=True)
class ContrastedCells:
    """A contrast's cells in one setting, in pairs of sides that agree in all factors it does not name."""

    contrast: Contrast
    words: Mapping[str, str]
    """Factor → word of the setting."""
    over: tuple[str, ...]
    """Factors that the contrast is averaged over."""
    confounders: tuple[str, ...]
    """Factors, beside the first one that the contrast names, in which all cells of a differ from all cells of b."""
    sides: tuple[tuple[tuple[Cell, ...], tuple[Cell, ...]], ...]
    paired: bool = False
    """Whether errors are those of the differences at each seed that all cells have."""
    searched: bool = False
    """Whether a search found the settings of some of its cells, so that everything is conditional on it."""

    @property
    def a(self) -> tuple[Cell, ...]:
        return tuple(cell for side, _ in self.sides for cell in side)

    @property
    def b(self) -> tuple[Cell, ...]:
        return tuple(cell for _, side in self.sides for cell in side)

    @property
    def metric(self) -> Metric:
        return self.a[0].metric

    @property
    def diverged(self) -> tuple[int, int]:
        """Runs of a, and of b, that diverged, or completed with a score that is no finite number."""
        return sum(map(lost_runs, self.a)), sum(map(lost_runs, self.b))

    @property
    def ended(self) -> tuple[int, int]:
        """Runs of a, and of b, that completed or diverged."""
        scored = [sum(len(cell.scores) for cell in side) for side in (self.a, self.b)]
        return scored[0] + self.diverged[0], scored[1] + self.diverged[1]

    @cached_property
    def look(self) -> Look | None:
        """The last look at all cells whose seeds a rule added; None: the seeds of all were fixed beforehand."""
        looks = [cell.look for cell in (*self.a, *self.b) if cell.look]
        if not looks:
            return None
        first, last = min(look.first for look in looks), max(look.last for look in looks)
        return Look(min(look.n for look in looks), first, last)

    @cached_property
    def compared(self) -> Mapping[str, Cell]:
        """Cell id → the cell, restricted to the last look (seed rule) and to common seeds (pairs)."""
        cells = {cell.id: cell for cell in (*self.a, *self.b)}
        if look := self.look:
            cells = {id: cell.until(look.n) if cell.seed_rule else cell for id, cell in cells.items()}
        # Evaluations of the same runs are compared seed by seed, also where one of them is missing.
        together: dict[tuple[int, ...], list[str]] = {}
        for id, cell in cells.items():
            together.setdefault(() if self.paired else tuple(seed.run_id for seed in cell.seeds), []).append(id)
        for ids in together.values():
            if self.paired or len(ids) > 1:
                common = set.intersection(*(set(cells[id].scores) for id in ids))
                cells |= {id: cells[id].only(common) for id in ids}
        return cells

    @property
    def n(self) -> int:
        """The smallest number of compared seeds of a cell; where a rule added seeds, the number that all cells have."""
        return min((len(cell.scores) for cell in self.compared.values()), default=0)

    @cached_property
    def estimate(self) -> Estimate | None:
        """The gain of a over b, with all looks allowed for; None where a cell has no spread."""
        cells = self.compared
        weights = dict.fromkeys(cells, 0.0)
        sign = self.metric.gain(1.0) / len(self.sides)
        for pair in self.sides:
            for side, direction in zip(pair, (sign, -sign), strict=True):
                for cell in side:
                    weights[cell.id] += direction / len(side)
        # Evaluations of the same runs are no independent samples, so their scores are added up seed by seed; and so are
        # those of all cells that are paired by seed.
        of_runs: dict[tuple[int, ...], list[tuple[float, Cell]]] = {}
        for id, weight in weights.items():
            cell = cells[id]
            runs = () if self.paired else tuple(seed.run_id for seed in cell.seeds if seed.seed in cell.scores)
            of_runs.setdefault(runs, []).append((weight, cell))
        parts: list[tuple[float, Summary]] = []
        documents: list[ByDocument | None] = []
        for weighted in of_runs.values():
            if not all(cell.compared for _, cell in weighted):
                return None
            # Then the spread is that of a single score.
            length = hypot(*(weight for weight, _ in weighted))
            scaled = [(weight / length if length else 0.0, cell) for weight, cell in weighted]
            seeds = weighted[0][1].scores
            summary = summarise([fsum(weight * cell.scores[seed] for weight, cell in scaled) for seed in seeds])
            assert summary
            known = [(weight, cell.by_document) for weight, cell in scaled if cell.by_document]
            parts.append((length, summary))
            documents.append(together(known) if len(known) == len(weighted) else None)
        return contrast(parts, documents, self.look)

    @property
    def margin(self) -> float | None:
        """The margin on the scale of the estimate."""
        means = [mean for cell in self.b if (mean := cell.reference) is not None]
        if self.contrast.margin is None or not means:
            return None
        return self.metric.margin_on_scale(self.contrast.margin, sum(mean / len(means) for mean in means))


def following(named: Iterable[str]) -> frozenset[str]:
    """Return the factors, except options of names, that these decide, or at least limit; in a layer, those of it."""
    named = frozenset(named)
    in_layers = {f"{layer}.{factor}" for layer, own in map(in_layer, named) if layer for factor in following([own])}
    return frozenset(in_layers) | {
        factor for factor, facts in table.factors().items() if not named.isdisjoint(facts.follows)
    }


def contrasted_cells(
    contrast: Contrast, runs: RecordedRuns, varied: frozenset[str], *, paired: bool = False
) -> dict[str, ContrastedCells]:
    """Setting → the contrast in it, for each setting that has both sides."""
    free = contrast.factors | following(contrast.factors)
    settings: dict[str, dict[str, list[Candidate]]] = {}
    for candidate in runs.candidates(contrast):
        rest = {factor: word for factor, word in candidate.words.items() if factor not in free}
        recipe = {factor: word for factor, word in rest.items() if factor.startswith(_SETTING) and factor not in varied}
        # The selection rule is no factor, but the score depends on it.
        setting = json.dumps([recipe, candidate.record.spec.value("select")])
        background = {factor: word for factor, word in rest.items() if factor not in {*recipe, *runs.options}}
        settings.setdefault(setting, {}).setdefault(json.dumps(background), []).append(candidate)
    contrasted = {}
    for setting, backgrounds in settings.items():
        pairs = [pair for candidates in backgrounds.values() for pair in _by_options(candidates, runs.options - free)]
        if pairs:
            sides = [each for a, _ in pairs for each in a], [each for _, b in pairs for each in b]
            over, confounders = _unspoken(sides, contrast, free, runs)
            contrasted[setting] = ContrastedCells(
                contrast,
                {factor: sides[0][0].words.get(factor, "none") for factor in SHOWN_FACTORS if factor not in varied},
                over,
                confounders,
                tuple((tuple(each.cell for each in a), tuple(each.cell for each in b)) for a, b in pairs),
                paired,
                searched=any(candidate.searched for side in sides for candidate in side),
            )
    return contrasted


def kept_apart(contrast: Contrast, runs: RecordedRuns) -> tuple[str, ...]:
    """The factors in which the closest cells of the two sides differ; none if a side has no finished cell."""
    free = contrast.factors | following(contrast.factors)
    sides: tuple[set[frozenset[tuple[str, str]]], ...] = (set(), set())
    for candidate in runs.candidates(contrast):
        words = {factor: word for factor, word in candidate.words.items() if factor not in free}
        for index in candidate.sides:
            sides[index].add(frozenset({**words, "select": candidate.record.spec.selection_metric}.items()))
    differ = [
        tuple(sorted({factor for factor, _ in a - b} & {factor for factor, _ in b - a}))
        for a in sides[0]
        for b in sides[1]
    ]
    return min(differ, key=lambda factors: (len(factors), factors), default=())


def _by_options(
    candidates: Sequence[Candidate], options: frozenset[str]
) -> Iterator[tuple[list[Candidate], list[Candidate]]]:
    """Pairs of sides that agree in every option, except those that some cell lacks, of cells that agree in all else.

    Two kernels that both have a temperature are compared at the same one. Between lookup and product the clip is no
    difference, since product has none: lookup counts with its default, as it has in a grid that does not name the clip.
    """
    shared = sorted(option for option in options if all(option in candidate.words for candidate in candidates))
    pairs: dict[tuple[str, ...], tuple[dict[str, Candidate], dict[str, Candidate]]] = {}
    for candidate in candidates:
        pair = pairs.setdefault(tuple(candidate.words[option] for option in shared), ({}, {}))
        for index in candidate.sides:
            pair[index][candidate.record.id] = candidate
    rest = options.difference(shared)
    defaults = {option: default_word(name) for option in rest if (name := in_layer(option)[1]) in known_options()}
    yield from ((_at_defaults(a, defaults), _at_defaults(b, defaults)) for a, b in pairs.values() if a and b)


def _at_defaults(side: Mapping[str, Candidate], defaults: Mapping[str, str | None]) -> list[Candidate]:
    """The cells of a side that have each option, or lack it, at its default; all cells if there is none."""
    candidates = [*side.values()]
    usual = (
        each for each in candidates if all(each.words.get(option, word) == word for option, word in defaults.items())
    )
    return [*usual] or candidates


def distinguished(
    settings: Mapping[str, Mapping[str, str]], without: frozenset[str] = frozenset()
) -> dict[str, dict[str, str]]:
    """The words of each setting, and where several have the same ones, those of as few factors more as tell them apart.

    Args:
        settings: key of a setting, as `contrasted_cells` makes it → its words.
        without: factors that are not added.
    """
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for key, words in settings.items():
        alike.setdefault(tuple(words.items()), []).append(key)
    distinct_words = {key: dict(words) for key, words in settings.items()}
    for keys in alike.values():
        recipes = {key: json.loads(key)[0] for key in keys}
        comparable = [factor for factor in recipes[keys[0]] if factor not in without]
        differ = [factor for factor in comparable if len({recipes[key].get(factor) for key in keys}) > 1]
        # A factor of words, such as `model.feed_forward`, says more than one of numbers.
        differ.sort(key=lambda factor: any((recipes[key].get(factor) or "")[:1].isdecimal() for key in keys))
        distinct = 1
        for factor in differ:
            more = {key: {**distinct_words[key], factor: recipes[key].get(factor) or "none"} for key in keys}
            if (now := len({tuple(words.values()) for words in more.values()})) > distinct:
                distinct_words, distinct = distinct_words | more, now
    return distinct_words


def lost_runs(cell: Cell) -> int:
    """Runs that diverged, or completed with a score that is no finite number."""
    return cell.diverged + (cell.summary.n - len(cell.scores) if cell.summary else 0)


def _unspoken(
    sides: tuple[Sequence[Candidate], Sequence[Candidate]],
    contrast: Contrast,
    free: frozenset[str],
    runs: RecordedRuns,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The factors that vary within the sides, and the factors beside the first different one in which the sides differ.

    A factor that only one side has, such as an encoding or an option of a word, is no difference.

    Args:
        free: the factors that the contrast names, and those that follow from them.
    """
    about = next((factor for factor, word in contrast.a.items() if contrast.b.get(factor) != word), None)
    over, confounders = [], []
    for factor in runs.factors:
        a, b = ({candidate.words.get(factor, "none") for candidate in side} for side in sides)
        if factor == about:
            continue
        if factor in free or factor in runs.options:
            if not a & b and "none" not in a | b:
                confounders.append(factor)
            elif len(a) > 1 or len(b) > 1:
                over.append(factor)
        elif len(a | b) > 1:
            over.append(factor)
    return tuple(over), tuple(confounders)
