"""BLEU by sacrebleu: as in the literature and, for tokenised text, also as sacrebleu computes it on raw text."""

from collections.abc import Sequence
from importlib.metadata import version

from sacrebleu.metrics.bleu import BLEU


class Bleu:
    """Scores translations; `signatures` maps each metric that was scored to sacrebleu's signature.

    `bleu` is BLEU as in the literature: tokenised text is scored as it is, raw text with sacrebleu's own tokeniser.
    `bleu_detokenised` exists for tokenised text only: the tokenisation is undone, and sacrebleu's tokeniser applied.

    Args:
        tokenised: whether punctuation is already separated from words in the references.
        language: language of the references, by which sacremoses undoes the tokenisation.
    """

    def __init__(self, *, tokenised: bool, language: str) -> None:
        # Tokenised text is scored as it is; sacrebleu warns of that unless it is forced.
        self._as_it_is = BLEU(tokenize="none" if tokenised else "13a", force=tokenised)
        self._detokenised = BLEU(tokenize="13a") if tokenised else None
        self._language = language
        self.signatures: dict[str, str] = {}

    def score(self, lines: Sequence[str], references: Sequence[str]) -> float:
        """Return the BLEU of lines against references, one for each line."""
        return self._scored("bleu", self._as_it_is, lines, references)

    def sums(self, lines: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Return the sums that BLEU is computed from; the sums of several texts add up to those of the whole.

        Returns:
            For n = 1 to 4, `ngrams_n`, the number of n-grams in the lines, and `matches_n`, the number of them that are
            in the references too; `words` and `reference_words`, the number of words in each.
        """
        score = self._as_it_is.corpus_score(lines, [references])
        return {
            **{f"matches_{n}": count for n, count in enumerate(score.counts, 1)},
            **{f"ngrams_{n}": count for n, count in enumerate(score.totals, 1)},
            "words": score.sys_len,
            "reference_words": score.ref_len,
        }

    def score_detokenised(self, lines: Sequence[str], references: Sequence[str]) -> float | None:
        """Return the BLEU of lines and references after undoing their tokenisation; None if they are raw text."""
        if self._detokenised is None:
            return None
        from sacremoses import MosesDetokenizer  # slow to import, and few need it

        detokenise = MosesDetokenizer(lang=self._language).detokenize
        raw, raw_references = ([detokenise(line.split()) for line in text] for text in (lines, references))
        return self._scored("bleu_detokenised", self._detokenised, raw, raw_references)

    def definitions(self, decoding: str) -> dict[str, str]:
        """Return what each metric that was scored means; `decoding` describes how the translations were found."""
        how = f"detokenised by sacremoses {version('sacremoses')} ({self._language})"
        scored = {"bleu": f"sacrebleu, {decoding}", "bleu_detokenised": f"sacrebleu, {decoding}, {how}"}
        return {name: f"{scored[name]}: {signature}" for name, signature in self.signatures.items()}

    def _scored(self, name: str, bleu: BLEU, lines: Sequence[str], references: Sequence[str]) -> float:
        score = bleu.corpus_score(lines, [references]).score
        self.signatures[name] = str(bleu.get_signature())
        return score
