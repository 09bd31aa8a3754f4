"""Numbers, names and places in the words of a report, the same in every format."""

from collections.abc import Container, Mapping, Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING

from kdx.metrics.decimals import rounded

if TYPE_CHECKING:
    from kdx.report.statistics.metric import Metric

LEVELS = " / "
"""Between the words of a nested header."""
_NATS = 3
"""Decimals of a difference in nats."""


def signed(value: float, metric: str) -> str:
    """`value`, rounded, with its sign; the minus is U+2212."""
    return _with_sign(value, rounded(abs(value), metric))


def difference(value: float, metric: "Metric") -> str:
    """A difference on the scale on which the metric is compared; perplexities are compared in nats."""
    if not metric.in_nats:
        return signed(value, metric.name)
    text = "nan" if isnan(value) else "∞" if not isfinite(value) else f"{abs(value):.{_NATS}f}"
    return _with_sign(value, text)


def interval(bounds: tuple[float, float], metric: "Metric | str") -> str:
    """An interval of scores, or of differences of a metric."""
    low, high = (rounded(bound, metric) if isinstance(metric, str) else difference(bound, metric) for bound in bounds)
    return f"{low} to {high}".replace("-", "−")


def probability(p: float) -> str:
    """A p-value with 3 decimals."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _with_sign(value: float, text: str) -> str:
    return text if isnan(value) or not float(text.replace("∞", "inf")) else f"{'−' if value < 0 else '+'}{text}"


def word_of(factor: str, word: str) -> str:
    """A factor's word, with the name of the factor where the word is unclear alone, as a number or `none` is."""
    unclear = word in ("none", "–", "true", "false") or word[:1].isdecimal()
    return f"{factor.rpartition('.')[2]} {word}" if unclear else word


def factor_column(name: str, taken: Container[str]) -> str:
    """The column of a factor, which may have the name of another column, such as `seed`."""
    return f"factor {name}" if name in taken else name


def what_sets_apart(headers: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The words that all of these headers share, and some of the others lack."""
    return {
        factor: word
        for factor, word in headers[0].items()
        if all(header[factor] == word for header in headers) and any(header[factor] != word for header in others)
    }


def in_levels(words: Mapping[str, str]) -> str:
    """The words of factors as the levels of a header, such as `rbf / width 128`."""
    return LEVELS.join(word_of(factor, word) for factor, word in words.items())


def setting(words: Mapping[str, str]) -> str:
    """A setting's words in one line: `translation, multi30k, width 128, steps 700`."""
    return ", ".join(word_of(factor, word) for factor, word in words.items())
