"""Moses' tokeniser (Koehn et al. 2007), which separates punctuation, through sacremoses.

As in newer versions of Moses, and in the published test text of IWSLT'14, the full stop at the end of a line is always
separated, since it is unlikely to belong to an abbreviation there.
"""

from collections.abc import Sequence

from sacremoses import MosesTokenizer

from kdx.data.text import Progress, no_progress

_BATCH = 4000
"""Number of lines from one report of progress to the next."""


def tokenised(lines: Sequence[str], language: str, progress: Progress = no_progress) -> list[str]:
    """Tokenise lines: one space between words and signs, with `&` and the like escaped as Moses does."""
    tokeniser = _Tokeniser(language)
    done: list[str] = []
    for line in lines:
        done.append(tokeniser.tokenize(line, return_str=True))
        if len(done) % _BATCH == 0:
            progress(f"tokenising {language}", len(done), len(lines))
    return done


class _Tokeniser(MosesTokenizer):  # type: ignore[misc]  # it has no types
    """Sacremoses' tokeniser with the last full stop separated; faster, since sacremoses makes these sets each time."""

    lower = frozenset(MosesTokenizer.IsLower)
    alpha = frozenset(MosesTokenizer.IsAlpha)

    def islower(self, text: str) -> bool:
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self.alpha.isdisjoint(text)

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        done: str = super().handles_nonbreaking_prefixes(text)
        # Longer runs of dots are written as words at this stage.
        return f"{done[:-1]} ." if done.endswith(".") and done[-2:-1].strip() else done
