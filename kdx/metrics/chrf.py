"""chrF by sacrebleu: F-score of character n-grams, n = 1 … 6, with recall at twice the weight of precision."""

from collections.abc import Sequence

from sacrebleu.metrics.chrf import CHRF

from kdx.metrics.interfaces import OutputMetric


class ChrF(OutputMetric):
    """F-score of character n-grams, by sacrebleu."""

    name = "chrf"
    source = "Popović 2015"

    def __init__(self) -> None:
        self._chrf = CHRF()

    def score(self, lines: Sequence[str], references: Sequence[str]) -> float:
        return float(self._chrf.corpus_score(lines, [references]).score)

    def definition(self) -> str:
        return f"sacrebleu: {self._chrf.get_signature()}"
