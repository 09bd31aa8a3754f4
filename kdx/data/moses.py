"""Moses' tokeniser (Koehn et al. 2007), which separates punctuation, through sacremoses.

As in newer versions of Moses, and in the published test text of IWSLT'14, the full stop at the end of a line is always
separated, since it is unlikely to belong to an abbreviation there.
"""

import os
import signal
from collections.abc import Sequence
from functools import lru_cache, partial
from multiprocessing import get_context

from sacremoses import MosesTokenizer

from kdx.data.text import Progress, no_progress

_BATCH = 4000
"""Number of lines that a process takes at a time; a shorter text is not worth a second process."""


def tokenised(lines: Sequence[str], language: str, progress: Progress = no_progress) -> list[str]:
    """Tokenises lines: one space between words and signs, with `&` and the like escaped as Moses does.

    Longer texts take as many processes as there are cores.
    """
    if len(lines) <= _BATCH:
        return _tokenise(language, lines)
    batches = [lines[start : start + _BATCH] for start in range(0, len(lines), _BATCH)]
    done: list[str] = []
    # A process that is forked while a display's thread runs could hang, and only the parent should handle Ctrl-C.
    context = get_context("spawn")
    with context.Pool(len(os.sched_getaffinity(0)), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        for batch in pool.imap(partial(_tokenise, language), batches):
            done += batch
            progress(f"tokenising {language}", len(done), len(lines))
    return done


def _tokenise(language: str, lines: Sequence[str]) -> list[str]:
    tokeniser = _tokeniser(language)
    return [tokeniser.tokenize(line, return_str=True) for line in lines]


@lru_cache
def _tokeniser(language: str) -> "_Tokeniser":
    return _Tokeniser(language)


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
