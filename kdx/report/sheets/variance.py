"""A listing of what each source of randomness contributes to the variance of scores."""

from math import isinf, sqrt

from kdx.report.sheet import Sheet
from kdx.report.statistics.metric import Metric
from kdx.report.statistics.variance_components import Component
from kdx.report.table.table import Table
from kdx.report.wording import difference, place

REST = "rest"
"""The name of what no source explains by itself."""


def variance_by_source(table: Table) -> Sheet:
    """A row for each cell and source: levels, standard deviation with its interval, and share of the variance."""
    factors = (*table.layout.row_factors, *table.layout.column_factors)
    rows: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    held: dict[str, list[str]] = {}
    for at, one in table.variances.items():
        metric, name = table.layout.places[at].metric, place(table.layout, at)
        if one.components is None:
            reasons.setdefault(one.reason, []).append(name)
            continue
        for fixed, seed in one.fixed.items():
            held.setdefault(f"seed {seed} of {fixed}", []).append(name)
        for source, component in (*one.components.sources.items(), (REST, one.components.rest)):
            share = one.components.share(component)
            rows.append(
                (
                    *table.layout.header(at).values(),
                    source,
                    _unit(metric),
                    str(component.levels),
                    _size(component.sd, metric),
                    _interval(component, metric),
                    "–" if share is None else f"{share:.0%}",
                )
            )
    notes = [
        "sd: standard deviation that seeds of one source alone cause, by a mixed model with a random effect for each "
        "source, estimated by REML; 95% interval by the profile of the likelihood.",
        "rest: how sources act together, which one run for each combination cannot tell from what does not repeat at "
        "all; its levels are degrees of freedom. share: of the variance of a run of which every source is drawn anew.",
    ]
    notes += [f"At {which} alone: {', '.join(names)}." for which, names in held.items()]
    notes += [f"Not estimated of {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    return Sheet(
        title=f"{table.layout.name}: sources of variance",
        key=(table.layout.name, "variance"),
        headers=(*factors, "source", "of", "levels", "sd", "95% interval", "share"),
        names=len(factors) + 2,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _unit(metric: Metric) -> str:
    return f"{metric.unit}, in nats" if metric.in_nats else metric.unit


def _size(value: float, metric: Metric) -> str:
    return "∞" if isinf(value) else difference(value, metric).lstrip("+")


def _interval(one: Component, metric: Metric) -> str:
    return f"{_size(sqrt(one.low), metric)} to {_size(sqrt(one.high), metric)}"
