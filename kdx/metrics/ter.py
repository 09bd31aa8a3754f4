"""Translation edit rate by sacrebleu: edits of words and moves of phrases, per hundred words of the reference."""

from collections.abc import Sequence

from sacrebleu.metrics.ter import TER

from kdx.metrics.interfaces import OutputMetric


class TranslationEditRate(OutputMetric):
    """Edits for each hundred words of the reference, by sacrebleu."""

    name = "ter"
    source = "Snover et al. 2006"
    better = "min"
    scale = "ratio"

    def __init__(self) -> None:
        self._ter = TER()

    def score(self, lines: Sequence[str], references: Sequence[str]) -> float:
        return float(self._ter.corpus_score(lines, [references]).score)

    def definition(self) -> str:
        return f"sacrebleu: {self._ter.get_signature()}"
