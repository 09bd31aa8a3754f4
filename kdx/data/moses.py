"""Moses' tokeniser (Koehn et al. 2007), which sets punctuation apart, by way of sacremoses.

As in newer versions of Moses, and in the published test text of IWSLT'14, the full stop at the end of a line stands
apart whatever it ends: there it is unlikely to be that of an abbreviation.
"""

import os
import signal
from collections.abc import Sequence
from functools import lru_cache, partial
from multiprocessing import get_context

from sacremoses import MosesTokenizer

from kdx.data.text import Told, untold

_BATCH = 4000
"""Lines that a process takes at a time; a shorter text is not worth a second process."""


def tokenised(lines: Sequence[str], language: str, told: Told = untold) -> list[str]:
    """Each line with one space between its words and signs, `&` and the like escaped as Moses does.

    Longer texts take as many processes as there are cores.
    """
    if len(lines) <= _BATCH:
        return _tokenise(language, lines)
    batches = [lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH)]
    done: list[str] = []
    # Forked while the thread of a display runs, a process could hang; and Ctrl-C is for the parent alone.
    context = get_context("spawn")
    with context.Pool(len(os.sched_getaffinity(0)), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        for batch in pool.imap(partial(_tokenise, language), batches):
            done += batch
            told(f"tokenising {language}", len(done), len(lines))
    return done


def _tokenise(language: str, lines: Sequence[str]) -> list[str]:
    tokeniser = _tokeniser(language)
    return [tokeniser.tokenize(line, return_str=True) for line in lines]


@lru_cache
def _tokeniser(language: str) -> "_Tokeniser":
    return _Tokeniser(language)


class _Tokeniser(MosesTokenizer):  # type: ignore[misc]  # tells no types
    """Sacremoses', with the last full stop apart, and half as fast again: it makes these two sets at every call."""

    lower = frozenset(MosesTokenizer.IsLower)
    alpha = frozenset(MosesTokenizer.IsAlpha)

    def islower(self, text: str) -> bool:
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self.alpha.isdisjoint(text)

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        done: str = super().handles_nonbreaking_prefixes(text)
        # Longer runs of dots are spelt out at this stage.
        return f"{done[:-1]} ." if done.endswith(".") and done[-2:-1].strip() else done
