"""Tables and claims as plain values for programs, in full precision.

Keys keep their names and meaning from version to version. Numbers may be NaN or infinite; whoever writes JSON has to
replace them.
"""

from dataclasses import asdict
from typing import Any

from kdx.report.against import Beside
from kdx.report.cells import Cell
from kdx.report.claims import Answer, Outcome
from kdx.report.comparisons import Difference, Pool
from kdx.report.statistics import LEVEL, Estimate
from kdx.report.table import Table


def to_json(table: Table) -> dict[str, Any]:
    """The table with one entry for each cell, and what is said below it."""
    return {
        "name": table.name,
        "caption": table.caption,
        "rows": list(table.row_factors),
        "columns": list(table.column_factors),
        "shown": table.shown.value,
        "notes": list(table.notes),
        "cells": [{**_place(table, at), **_values(cell)} for at, cell in table.places.items()],
        "errors": [_pool(pool) for pool in table.pools],
        "baseline": dict(table.baseline),
        "differences": [_difference(table, one) for one in table.differences],
        "unequal": [
            {
                "what": one.topic,
                "task": one.task,
                "metric": one.metric.name,
                "compared": one.compared,
                "values": {told: [_place(table, at) for at in places] for told, places in one.values.items()},
            }
            for one in table.audit
        ],
        "published": _beside(table, table.beside) if table.beside else None,
    }


def claim_to_json(answer: Answer) -> dict[str, Any]:
    """A claim with its verdict and every comparison that it rests on."""
    claim = answer.claim
    return {
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "verdict": answer.verdict.value,
        "more_seeds": answer.more,
        "contrasts": [_outcome(one) for one in answer.outcomes],
    }


def _place(table: Table, at: tuple[int, int]) -> dict[str, Any]:
    row, column = at
    return {
        "row": dict(zip(table.row_factors, table.rows[row], strict=True)),
        "column": dict(zip(table.column_factors, table.columns[column], strict=True)),
    }


def _values(cell: Cell) -> dict[str, Any]:
    summary = cell.summary
    half = summary.half_width if summary else None
    finished = sum(one.score is not None for one in cell.seeds)
    return {
        "cell": cell.id,
        "state": cell.state.value,
        "metric": cell.metric.recorded,
        "direction": cell.metric.direction.value,
        "value": cell.value,
        "score": cell.score,
        "best": cell.best,
        "near_best": cell.near,
        "ahead_of_best": cell.ahead,
        "run": cell.run_id,
        "seed": cell.seed,
        "selected_by": cell.selected_by.name,
        "validation": cell.validation,
        "mean": summary.mean if summary else None,
        "sd": summary.sd if summary else None,
        "interval": [summary.mean - half, summary.mean + half] if summary and half is not None else None,
        "n": summary.n if summary else 0,
        "expected_best_of": [cell.expected(draws) for draws in range(1, finished + 1)],
        "planned": cell.planned,
        "completed": cell.completed,
        "diverged": cell.diverged,
        "divergence_rate": list(cell.divergence_rate) if cell.diverged else None,
        "out_of_memory": cell.out_of_memory,
        "failed": cell.failed,
        "unfinished": cell.unfinished,
        "seeds": [asdict(one) for one in cell.seeds],
    }


def _pool(pool: Pool) -> dict[str, Any]:
    return {
        "task": pool.task,
        "metric": pool.metric.name,
        "cells": pool.cells,
        "seeds": pool.seeds,
        "residual_sd": pool.model.sd if pool.model else None,
        "degrees_of_freedom": pool.model.df if pool.model else None,
        "detectable_difference": pool.detectable,
        "comparisons": pool.comparisons,
        "detectable_corrected": pool.detectable_corrected,
        "p_equal_spread": pool.unequal,
    }


def _difference(table: Table, one: Difference) -> dict[str, Any]:
    estimate, boot = one.estimate, one.bootstrap
    return {
        **_place(table, one.at),
        "against": _place(table, one.against),
        "metric": one.metric.name,
        "n": one.n,
        **_estimate(estimate, LEVEL),
        "p_holm": one.p,
        "effect": estimate.effect if estimate else None,
        "p_pair_alone": one.alone.p if one.alone else None,
        "margin": one.margin,
        "p_equivalent": one.p_equivalent,
        "bootstrap": asdict(boot) if boot else None,
    }


def _estimate(estimate: Estimate | None, level: float) -> dict[str, Any]:
    return {
        "better_by": estimate.value if estimate else None,
        "interval": list(estimate.interval(level)) if estimate else None,
        "level": level,
        "p": estimate.p if estimate else None,
    }


def _beside(table: Table, beside: Beside) -> dict[str, Any]:
    return {
        "paper": beside.paper.name,
        "title": beside.paper.title,
        "source": beside.paper.source,
        "protocol": beside.paper.protocol,
        "scale": {
            task: {"ours": ours, "published": beside.paper.scale.get(task)} for task, ours in beside.scale.items()
        },
        "cells": [
            {
                **_place(table, one.at),
                "metric": one.metric.name,
                "tables": list(one.tables),
                "published": one.published,
                "note": one.note,
                "published_state": "not converge" if one.published is None else "value",
                "ours": one.ours,
                "ours_state": "not converge" if one.diverged else "hole" if one.ours is None else "value",
                "better_by": one.gain,
            }
            for one in beside.pairs
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
            for one in beside.agreement
        ],
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    contrast = one.contrast
    return {
        "where": dict(contrast.where),
        "a": dict(contrast.a),
        "b": dict(contrast.b),
        "expect": contrast.expect.value,
        "margin": contrast.margin,
        "metric": one.metric.name if one.metric else contrast.metric,
        "setting": dict(one.setting),
        "averaged_over": list(one.over),
        "also_different": list(one.also),
        "cells": {"a": list(one.a), "b": list(one.b)},
        "n": one.n,
        **_estimate(one.estimate, one.level),
        "pooled_cells": one.pooled,
        "residual_sd": one.estimate.sd if one.estimate else None,
        "degrees_of_freedom": one.estimate.df if one.estimate else None,
        "p_equal_spread": one.unequal,
        "diverged": {"a": one.diverged[0], "b": one.diverged[1]},
        "ended": {"a": one.ended[0], "b": one.ended[1]},
        "divergence_difference": list(one.rates) if one.rates else None,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "more_seeds": one.more,
    }
