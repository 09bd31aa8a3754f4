"""Tables and claims as plain values for programs, in full precision.

Each record is a list of keys with the attributes whose values they have (`taken`); keys keep their meaning.
Numbers may be NaN or infinite; the caller has to replace these before it writes JSON.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from kdx.grid.table_layout import Address
from kdx.report.papers.published_comparison import PublishedComparison
from kdx.report.papers.verdicts import Answer, ContrastOutcome
from kdx.report.selection.cells import Cell, State
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.notes import correction
from kdx.report.statistics.estimates import LEVEL, Estimate
from kdx.report.statistics.metric import Metric, ratio
from kdx.report.table.audit import UnequalFact
from kdx.report.table.comparisons import Difference, Group, Mark
from kdx.report.tables import Table


def plain(value: Any) -> Any:
    """A value of mappings, lists, texts and numbers alone; a metric is its name."""
    if isinstance(value, Metric):
        return value.name
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {plain(key): plain(inner) for key, inner in value.items()}
    return list(map(plain, value)) if isinstance(value, list | tuple) else value


def taken(value: Any, names: str) -> dict[str, Any]:
    """Some attributes of a value as plain values, under names that blanks separate.

    A name such as `sd=summary.sd` is a key with the path to its attribute; the value is None where the path ends early.
    """
    pairs = (name.rpartition("=")[::2] for name in names.split())
    return {key or path: plain(_attribute(value, path)) for key, path in pairs}


def _attribute(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def to_json(table: Table, made_by: str = "") -> dict[str, Any]:
    """The table with one entry for each cell, and its notes.

    Args:
        made_by: the command that makes it (`kdx.report.made_by`).
    """
    layout = table.layout
    cells = [
        {
            **_place(table, at),
            **cell_to_json(cell, table.marks.get(at)),
            "seeds": [
                taken(seed, "seed run_id state validation score undertrained invalidated") for seed in cell.seeds
            ],
        }
        for at, cell in layout.places.items()
    ]
    return {
        **({"made_by": made_by} if made_by else {}),
        **taken(layout, "name caption rows=row_factors columns=column_factors shown"),
        **taken(table, "notes"),
        "cells": cells,
        **taken(table, "definitions"),
        "errors": [_group(group) for group in table.groups],
        **taken(table, "baseline"),
        "differences": [difference_to_json(table, difference) for difference in table.differences],
        "unequal": [_unequal(table, entry) for entry in table.audit],
        "published": _published(table, table.published) if table.published else None,
        "searches": [{**_place(table, at), **search_to_json(entry)} for at, entry in table.searches.items()],
    }


def claim_to_json(answer: Answer) -> dict[str, Any]:
    """A claim with its verdict in each setting."""
    settings = [
        {
            **taken(verdict, "setting verdict confounded_by=confounders more_seeds=more"),
            "contrasts": list(map(outcome_to_json, verdict.outcomes)),
        }
        for verdict in answer.settings
    ]
    return {**taken(answer.claim, "id statement source pairs grids"), "settings": settings}


def cell_to_json(cell: Cell, mark: Mark | None) -> dict[str, Any]:
    """A cell with its score, and with what its seeds give together."""
    return {
        **taken(cell, "cell=id metric=metric.recorded direction=metric.direction state value score"),
        "best": mark is Mark.BEST,
        "near_best": mark is Mark.NOT_DISTINGUISHABLE,
        "not_compared_with_best": mark is Mark.UNTESTED,
        **taken(cell, "run=run_id seed selected_by validation mean=summary.mean sd=summary.sd interval documents"),
        "n": cell.summary.n if cell.summary else 0,
        **taken(cell, "expected_best_of=expected_best planned completed diverged"),
        "divergence_rate": list(cell.divergence_rate) if cell.diverged else None,
        **taken(cell, "pruned invalidated undertrained out_of_memory failed unfinished"),
    }


def _place(table: Table, at: Address) -> dict[str, Any]:
    layout, (row, column) = table.layout, at
    return {
        "row": dict(zip(layout.row_factors, layout.rows[row], strict=True)),
        "column": dict(zip(layout.column_factors, layout.columns[column], strict=True)),
    }


def _unequal(table: Table, fact: UnequalFact) -> dict[str, Any]:
    return {
        **taken(fact, "what=topic task metric compared"),
        "instead": fact.instead or None,
        "values": {value: [_place(table, at) for at in places] for value, places in fact.values.items()},
    }


def search_to_json(searched: SearchedCell) -> dict[str, Any]:
    """The search that found a cell, with every trial; the winner's cell is the one in the table."""
    return {
        **taken(searched, "cell=winner.cell_id search=search.id metric direction=metric.direction"),
        "tuning": searched.search.tuning.model_dump(mode="json"),
        "space": {name: space.plain for name, space in searched.search.space.items()},
        **taken(searched, "winner=winner.number settings=winner.parameters"),
        "at_edge": {
            name: {"edge": "upper" if edge.upper else "lower", "end": edge.end, "try": edge.beyond}
            for name, edge in searched.edges.items()
        },
        **taken(searched, "expected_best"),
        "without_expected_best": searched.without_expected_best or None,
        "trials": [
            taken(trial, "number cell=cell_id state value steps settings=parameters") for trial in searched.trials
        ],
    }


def _group(group: Group) -> dict[str, Any]:
    low, usual, high = group.spread or (None, None, None)
    return {
        **taken(group, "task metric scale=metric.scale cells seeds comparisons"),
        "lowest_sd": low,
        "usual_sd": usual,
        "highest_sd": high,
        "detectable_difference": group.minimum_detectable_difference(),
        "detectable_corrected": group.minimum_detectable_difference(corrected=True),
    }


def difference_to_json(table: Table, difference: Difference) -> dict[str, Any]:
    """The difference of a cell from its baseline or from the best."""
    estimate = difference.estimate
    return {
        **_place(table, difference.at),
        "against": _place(table, difference.against),
        **taken(difference, "metric scale=metric.scale n"),
        **_estimate(estimate),
        "ratio": ratio(estimate.value) if estimate and difference.metric.in_nats else None,
        "p_correction": correction(table),
        **taken(difference, "p_corrected=p effect=estimate.effect margin p_equivalent"),
        "randomisation": plain(table.randomisations.get(difference.at)),
    }


def _estimate(estimate: Estimate | None, level: float = LEVEL) -> dict[str, Any]:
    """An estimate; without documents, its error is over seeds alone."""
    return {
        **taken(estimate, "better_by=value p sd documents degrees_of_freedom=df"),
        "interval": list(estimate.interval(level)) if estimate else None,
        "level": level,
    }


def _published(table: Table, published: PublishedComparison) -> dict[str, Any]:
    scales = published.paper.scale
    cells = [
        {
            **_place(table, pair.at),
            **taken(pair, "metric tables published note ours same_corpus better_by=gain scale=metric.unit"),
            "published_state": State.DIVERGED.value if pair.published is None else "value",
            "ours_state": "diverged" if pair.diverged else "missing" if pair.ours is None else "value",
            "places": {"published": pair.places[0], "ours": pair.places[1]} if pair.places else None,
        }
        for pair in published.pairs
    ]
    return {
        **taken(published, "paper=paper.name title=paper.title source=paper.source protocol=paper.protocol"),
        "scale": {task: {"ours": ours, "published": scales.get(task)} for task, ours in published.scale.items()},
        "cells": cells,
        "order": [taken(pair, "task corpus metric n p kendall_tau=tau") for pair in published.agreement],
    }


def outcome_to_json(outcome: ContrastOutcome) -> dict[str, Any]:
    """A comparison that a claim rests on."""
    contrast, cells = outcome.contrast, outcome.cells
    diverged, ended = (cells.diverged, cells.ended) if cells else ((0, 0), (0, 0))
    return {
        **taken(contrast, "where a b expect margin"),
        "margin_on_scale": cells.margin if cells else None,
        "metric": cells.metric.name if cells else contrast.metric,
        "scale": cells.metric.scale if cells else None,
        "averaged_over": list(cells.over) if cells else [],
        "confounded_by": list(cells.confounders) if cells else [],
        "cells": {side: [cell.id for cell in getattr(cells, side)] if cells else [] for side in ("a", "b")},
        "n": cells.n if cells else 0,
        **_estimate(outcome.estimate, outcome.level),
        "allowed_errors": outcome.errors._asdict(),
        "diverged": {"a": diverged[0], "b": diverged[1]},
        "ended": {"a": ended[0], "b": ended[1]},
        "divergence_difference": list(outcome.rates) if outcome.rates else None,
        **taken(outcome, "verdict reason"),
        "more_seeds": outcome.more,
    }
