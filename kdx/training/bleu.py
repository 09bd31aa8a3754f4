"""BLEU by sacrebleu, as the literature takes it; of tokenised text also as sacrebleu takes it of raw text."""

from collections.abc import Sequence
from importlib.metadata import version

from sacrebleu.metrics.bleu import BLEU


class Bleu:
    """Scores translations, and remembers how: `signatures` has sacrebleu's, by metric, from the first score on.

    `bleu` is that of the literature: of tokenised text as it stands, of raw text by sacrebleu's own tokeniser.
    `bleu_detokenised`, of tokenised text, undoes the tokenisation and then takes sacrebleu's.

    Args:
        tokenised: whether punctuation stands apart in the references already.
        language: of the references, by which sacremoses undoes the tokenisation.
    """

    def __init__(self, *, tokenised: bool, language: str) -> None:
        # Tokenised text is scored as it stands; sacrebleu asks to be forced, since it prefers raw text.
        self._as_it_is = BLEU(tokenize="none" if tokenised else "13a", force=tokenised)
        self._detokenised = BLEU(tokenize="13a") if tokenised else None
        self._language = language
        self.signatures: dict[str, str] = {}

    def score(self, lines: Sequence[str], references: Sequence[str]) -> float:
        """BLEU of lines, one a reference."""
        return self._scored("bleu", self._as_it_is, lines, references)

    def sums(self, lines: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """The sums that BLEU of lines is made of; those of several texts add up to those of all of them.

        Of n = 1 to 4, how many n-grams the lines have (`ngrams_n`), and how many of them the references have too
        (`matches_n`); and how many words both have (`words`, `reference_words`).
        """
        score = self._as_it_is.corpus_score(lines, [references])
        return {
            **{f"matches_{n}": count for n, count in enumerate(score.counts, 1)},
            **{f"ngrams_{n}": count for n, count in enumerate(score.totals, 1)},
            "words": score.sys_len,
            "reference_words": score.ref_len,
        }

    def score_detokenised(self, lines: Sequence[str], references: Sequence[str]) -> float | None:
        """BLEU after the tokenisation of both was undone; None: they are raw text."""
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
