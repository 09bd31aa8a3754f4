"""The claims on a page: each verdict with the intervals behind it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from markupsafe import Markup

from kdx.report.figures.charts import Mark, forest
from kdx.report.papers.paper_file import Expect
from kdx.report.papers.verdicts import Answer, SettingVerdict, Verdict
from kdx.report.sheet import Sheet
from kdx.report.sheets.claims import CONFOUNDED, claim, contrast_names, not_tested, summary
from kdx.report.wording import difference, interval

_COLOURS = {Verdict.HOLDS: "var(--good)", Verdict.DOES_NOT_HOLD: "var(--bad)"}
_BADGES = {
    **{f"{verdict}{CONFOUNDED}": "confounded" for verdict in Verdict},
    **{str(verdict): verdict.replace(" ", "-") for verdict in Verdict},
}


def badge_of(text: str) -> str:
    """The class of the badge of a text that begins with a verdict; empty where it does not."""
    return next((name for verdict, name in _BADGES.items() if text.startswith(verdict)), "")


def sections(answers: Sequence[Answer], options: str) -> Iterator[dict[str, Any]]:
    """The parts of the claims of a paper as the template takes them: all verdicts, then each claim in each setting.

    Args:
        options: see `not_tested`.
    """
    for sheet in summary(answers):
        yield {"badge": "", "title": sheet.title, "sheet": sheet, "figures": ()}
    for answer in answers:
        for verdict, sheet in zip(answer.tested, claim(answer), strict=True):
            title = sheet.title.replace(f": {verdict}", "", 1)
            yield {"badge": str(verdict), "title": title, "sheet": _verdict_first(sheet), "figures": _forest(verdict)}
    for sheet in not_tested(answers, options):
        yield {"badge": str(Verdict.NOT_TESTED), "title": sheet.title, "sheet": sheet, "figures": ()}


def _verdict_first(sheet: Sheet) -> Sheet:
    at = sheet.headers.index("verdict")
    headers = (sheet.headers[at], *sheet.headers[:at], *sheet.headers[at + 1 :])
    rows = tuple((row[at], *row[:at], *row[at + 1 :]) for row in sheet.rows)
    return replace(sheet, headers=headers, rows=rows, names=sheet.names + 1)


def _forest(verdict: SettingVerdict) -> list[Markup]:
    """The interval of each contrast, with a bar at its margin; nothing where no contrast has one."""
    tested = [outcome for outcome in verdict.outcomes if outcome.cells]
    marks = []
    for outcome, name in zip(tested, contrast_names(tested, verdict.setting), strict=True):
        estimate, bounds, metric = outcome.estimate, outcome.interval, outcome.metric
        if not (outcome.cells and estimate and bounds and metric and all(map(isfinite, bounds))):
            continue
        margin = outcome.cells.margin or 0.0
        at = {Expect.BETTER: (margin,), Expect.NO_WORSE: (-margin,), Expect.EQUIVALENT: (-margin, margin)}
        level = f"{100 * outcome.level:.4g}% interval {interval(bounds, metric)}"
        marks.append(
            Mark(
                f"{name}: {difference(estimate.value, metric)}, {level}, {outcome.verdict}",
                "",
                outcome.verdict in _COLOURS,
                estimate.value,
                low=bounds[0],
                high=bounds[1],
                group=name,
                colour=_COLOURS.get(outcome.verdict, "var(--muted)"),
                at=at[outcome.contrast.expect],
            )
        )
    metrics = list(dict.fromkeys(outcome.metric.scale_in_words for outcome in tested if outcome.metric))
    drawn = (
        forest(marks, f"a better by ({', '.join(metrics)}); bar: what is expected; hollow: cannot tell")
        if marks
        else ""
    )
    return [Markup(drawn)] if drawn else []
