"""Tables and claims as plain values for programs, in full precision.

Keys keep their names and meaning from version to version. Numbers may be NaN or infinite; the caller has to
replace these before it writes JSON.
"""

from dataclasses import asdict
from typing import Any

from kdx.grid.table_layout import Address
from kdx.report.papers.decisions import ContrastOutcome
from kdx.report.papers.published_comparison import PublishedComparison
from kdx.report.papers.verdicts import Answer, SettingVerdict
from kdx.report.selection.cells import Cell, State
from kdx.report.selection.searched import SearchedCell
from kdx.report.sheets.variance import REST
from kdx.report.statistics.by_document import Documents
from kdx.report.statistics.estimates import LEVEL, Estimate
from kdx.report.statistics.metric import ratio
from kdx.report.table.comparisons import Difference, Group, Mark
from kdx.report.table.source_variance import SourceVariance
from kdx.report.table.table import Table
from kdx.report.wording import correction


def to_json(table: Table, made_by: str = "") -> dict[str, Any]:
    """The table with one entry for each cell, and its notes.

    Args:
        made_by: the command that makes it (`kdx.report.made_by`).
    """
    return {
        **({"made_by": made_by} if made_by else {}),
        "name": table.layout.name,
        "caption": table.layout.caption,
        "rows": list(table.layout.row_factors),
        "columns": list(table.layout.column_factors),
        "shown": table.layout.shown.value,
        "notes": list(table.notes),
        "cells": [
            {**_place(table, at), **_values(cell, table.marks.get(at))} for at, cell in table.layout.places.items()
        ],
        "definitions": list(table.definitions),
        "errors": [_group(group) for group in table.groups],
        "baseline": dict(table.baseline),
        "differences": [_difference(table, one) for one in table.differences],
        "unequal": [
            {
                "what": one.topic,
                "task": one.task,
                "metric": one.metric.name,
                "compared": one.compared,
                "instead": one.instead or None,
                "values": {value: [_place(table, at) for at in places] for value, places in one.values.items()},
            }
            for one in table.audit
        ],
        "published": _published(table, table.published) if table.published else None,
        "variances": [{**_place(table, at), **_variance(table, at, one)} for at, one in table.variances.items()],
        "searches": [{**_place(table, at), **search_to_json(one)} for at, one in table.searches.items()],
    }


def claim_to_json(answer: Answer) -> dict[str, Any]:
    """A claim with its verdict in each setting."""
    claim = answer.claim
    return {
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "error_model": claim.error_model.value,
        "grids": list(claim.grids),
        "settings": [_setting(one) for one in answer.settings],
    }


def _setting(one: SettingVerdict) -> dict[str, Any]:
    return {
        "setting": dict(one.setting),
        "verdict": one.verdict.value,
        "confounded_by": list(one.confounders),
        "more_seeds": one.more,
        "contrasts": [_outcome(outcome) for outcome in one.outcomes],
    }


def _place(table: Table, at: tuple[int, int]) -> dict[str, Any]:
    row, column = at
    return {
        "row": dict(zip(table.layout.row_factors, table.layout.rows[row], strict=True)),
        "column": dict(zip(table.layout.column_factors, table.layout.columns[column], strict=True)),
    }


def _variance(table: Table, at: Address, one: SourceVariance) -> dict[str, Any]:
    """Variances on the scale of comparison, squared."""
    cell = table.layout.places[at]
    found = one.components
    return {
        "cell": cell.id,
        "metric": cell.metric.recorded,
        "in_nats": cell.metric.in_nats,
        "mean": one.mean,
        "n": len(cell.scores),
        "fixed": {source.value: seed for source, seed in one.fixed.items()},
        "reason": one.reason or None,
        "total": found.total if found else None,
        "sources": {
            name: {**asdict(component), "sd": component.sd, "share": found.share(component)}
            for name, component in {**found.sources, REST: found.rest}.items()
        }
        if found
        else {},
    }


def search_to_json(one: SearchedCell) -> dict[str, Any]:
    """The search that found a cell, with every trial; the winner's cell is the one in the table."""
    return {
        "cell": one.winner.cell_id,
        "search": one.search.id,
        "metric": one.metric.name,
        "direction": one.metric.direction.value,
        "tuning": one.search.tuning.model_dump(mode="json"),
        "space": {name: of.plain for name, of in one.search.space.items()},
        "winner": one.winner.number,
        "settings": dict(one.winner.parameters),
        "at_edge": {
            name: {"edge": "upper" if edge.upper else "lower", "end": edge.end, "try": edge.beyond}
            for name, edge in one.edges.items()
        },
        "expected_best": [asdict(each) for each in one.expected_best],
        "without_expected_best": one.without_expected_best or None,
        "trials": [
            {
                "number": each.number,
                "cell": each.cell_id,
                "state": each.state.value if each.state else None,
                "value": each.value,
                "steps": one.steps.get(each.number),
                "settings": dict(each.parameters),
            }
            for each in one.trials
        ],
    }


def _values(cell: Cell, mark: Mark | None) -> dict[str, Any]:
    summary = cell.summary
    return {
        "cell": cell.id,
        "state": cell.state.value,
        "metric": cell.metric.recorded,
        "direction": cell.metric.direction.value,
        "value": cell.value,
        "score": cell.score,
        "best": mark is Mark.BEST,
        "near_best": mark is Mark.NOT_DISTINGUISHABLE,
        "not_compared_with_best": mark is Mark.UNTESTED,
        "run": cell.run_id,
        "seed": cell.seed,
        "selected_by": cell.selected_by.name,
        "validation": cell.validation,
        "mean": summary.mean if summary else None,
        "sd": summary.sd if summary else None,
        "interval": list(cell.interval) if cell.interval else None,
        "documents": _documents(cell.documents),
        "n": summary.n if summary else 0,
        "expected_best_of": cell.expected_best,
        "planned": cell.planned,
        "completed": cell.completed,
        "diverged": cell.diverged,
        "divergence_rate": list(cell.divergence_rate) if cell.diverged else None,
        "pruned": cell.pruned,
        "invalidated": cell.invalidated,
        "undertrained": cell.undertrained,
        "out_of_memory": cell.out_of_memory,
        "failed": cell.failed,
        "unfinished": cell.unfinished,
        "seeds": [
            {
                "seed": one.seed,
                "run_id": one.run_id,
                "state": one.state.value,
                "validation": one.validation,
                "score": one.score,
                "undertrained": one.undertrained,
                "invalidated": one.invalidated,
            }
            for one in cell.seeds
        ],
    }


def _group(group: Group) -> dict[str, Any]:
    low, usual, high = group.spread or (None, None, None)
    return {
        "task": group.task,
        "metric": group.metric.name,
        "scale": group.metric.scale,
        "cells": group.cells,
        "seeds": group.seeds,
        "lowest_sd": low,
        "usual_sd": usual,
        "highest_sd": high,
        "detectable_difference": group.minimum_detectable_difference,
        "comparisons": group.comparisons,
        "detectable_corrected": group.corrected_minimum_detectable_difference,
        "p_no_seed_effect": group.seed_effect,
    }


def _difference(table: Table, one: Difference) -> dict[str, Any]:
    estimate, over = one.estimate, table.randomisations.get(one.at)
    return {
        **_place(table, one.at),
        "against": _place(table, one.against),
        "metric": one.metric.name,
        "scale": one.metric.scale,
        "n": one.n,
        **_estimate(estimate),
        "ratio": ratio(estimate.value) if estimate and one.metric.in_nats else None,
        "p_corrected": one.p,
        "p_correction": correction(table),
        "effect": estimate.effect if estimate else None,
        "p_paired": one.paired.p if one.paired else None,
        "margin": one.margin,
        "p_equivalent": one.p_equivalent,
        "randomisation": asdict(over) if over else None,
    }


def _documents(documents: Documents | None) -> dict[str, Any] | None:
    """What an error is over beside seeds; None: it is over seeds alone."""
    return asdict(documents) if documents else None


def _estimate(estimate: Estimate | None, level: float = LEVEL) -> dict[str, Any]:
    return {
        "better_by": estimate.value if estimate else None,
        "interval": list(estimate.interval(level)) if estimate else None,
        "level": level,
        "p": estimate.p if estimate else None,
        "sd": estimate.sd if estimate else None,
        "degrees_of_freedom": estimate.df if estimate else None,
        "documents": _documents(estimate.documents) if estimate else None,
    }


def _published(table: Table, published: PublishedComparison) -> dict[str, Any]:
    return {
        "paper": published.paper.name,
        "title": published.paper.title,
        "source": published.paper.source,
        "protocol": published.paper.protocol,
        "scale": {
            task: {"ours": ours, "published": published.paper.scale.get(task)} for task, ours in published.scale.items()
        },
        "cells": [
            {
                **_place(table, one.at),
                "metric": one.metric.name,
                "tables": list(one.tables),
                "published": one.published,
                "note": one.note,
                "published_state": State.DIVERGED.value if one.published is None else "value",
                "ours": one.ours,
                "ours_state": "diverged" if one.diverged else "hole" if one.ours is None else "value",
                "same_corpus": one.same_corpus,
                "better_by": one.gain,
                "scale": one.metric.unit,
                "places": {"published": one.places[0], "ours": one.places[1]} if one.places else None,
            }
            for one in published.pairs
        ],
        "order": [
            {
                "task": one.task,
                "corpus": one.corpus,
                "metric": one.metric.name,
                "n": one.n,
                "kendall_tau": one.tau,
                "p": one.p,
            }
            for one in published.agreement
        ],
    }


def _outcome(one: ContrastOutcome) -> dict[str, Any]:
    contrast = one.contrast
    return {
        "where": dict(contrast.where),
        "a": dict(contrast.a),
        "b": dict(contrast.b),
        "expect": contrast.expect.value,
        "margin": contrast.margin,
        "margin_on_scale": one.margin,
        "metric": one.metric.name if one.metric else contrast.metric,
        "scale": one.metric.scale if one.metric else None,
        "averaged_over": list(one.over),
        "confounded_by": list(one.confounders),
        "cells": {"a": list(one.a), "b": list(one.b)},
        "n": one.n,
        **_estimate(one.estimate, one.level),
        "allowed_errors": one.errors._asdict(),
        "diverged": {"a": one.diverged[0], "b": one.diverged[1]},
        "ended": {"a": one.ended[0], "b": one.ended[1]},
        "divergence_difference": list(one.rates) if one.rates else None,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "more_seeds": one.more,
    }
