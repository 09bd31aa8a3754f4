"""Learns the same byte-pair merges as subword-nmt (Sennrich et al. 2016) in a fraction of its time.

subword-nmt searches all pairs for the most frequent one before each merge; here a heap has it on top. subword-nmt marks
the end of a word by `</w>` on the last letter, which a text may itself contain; here the mark is a space, which no word
contains. So the two can differ only on a text with that string.
"""

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

MARK = " "
"""Mark at the end of the last piece of each word."""

Pair = tuple[str, str]
_Entry = tuple[int, tuple[int, ...], tuple[int, ...], Pair]


def letters_of(word: str) -> list[str]:
    """Return the pieces of a word before the first merge: its letters, the last one marked."""
    return [*word[:-1], word[-1] + MARK]


def learn_merges(counts: Mapping[str, int], limit: int) -> list[Pair]:
    """Return the pairs of pieces to merge, in order: at most `limit`, and none that occurs only once.

    The most frequent pair comes first; of two equally frequent pairs, the one that sorts last, as in subword-nmt.

    Args:
        counts: word of the training text → number of times that it occurs.
        limit: largest number of merges.
    """
    words = [letters_of(word) for word in counts]
    times = list(counts.values())
    frequency: defaultdict[Pair, int] = defaultdict(int)
    places: defaultdict[Pair, set[int]] = defaultdict(set)  # words that have, or once had, the pair
    for place, pieces in enumerate(words):
        for pair in pairwise(pieces):
            frequency[pair] += times[place]
            places[pair].add(place)
    # A pair becomes more frequent only during the merge that makes its newer piece. So its frequency in the heap is
    # never too low, and one that is too high is corrected when the pair comes up.
    backwards = _Backwards()

    def entry(pair: Pair) -> _Entry:
        return -frequency[pair], backwards[pair[0]], backwards[pair[1]], pair

    heap = list(map(entry, frequency))
    heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < limit:
        negative, _, _, pair = heappop(heap)
        if frequency[pair] < 2:
            continue
        again = {pair}
        if frequency[pair] == -negative:
            merges.append(pair)
            again = set()
            for place in places.pop(pair):
                for change, changed in _merge(words[place], pair):
                    frequency[changed] += change * times[place]
                    if change > 0:
                        places[changed].add(place)
                        again.add(changed)
            del frequency[pair]
        for pair in again:
            heappush(heap, entry(pair))
    return merges


def _merge(pieces: list[str], pair: Pair) -> list[tuple[int, Pair]]:
    """Merges each occurrence of the pair, from the left; returns the changes in the numbers of pairs."""
    first, second = pair
    merged = first + second
    changes = []
    place = 0
    while place < len(pieces) - 1:
        if pieces[place] == first and pieces[place + 1] == second:
            if place:
                left = pieces[place - 1]
                changes += [(-1, (left, first)), (1, (left, merged))]
            if place + 2 < len(pieces):
                right = pieces[place + 2]
                changes += [(-1, (second, right)), (1, (merged, right))]
            pieces[place : place + 2] = [merged]
        place += 1
    return changes


class _Backwards(dict[str, tuple[int, ...]]):
    """Piece → a key that sorts pieces in the reverse of subword-nmt's order."""

    def __missing__(self, piece: str) -> tuple[int, ...]:
        # The 1 is above the negative of any letter, so a piece comes before its own prefixes.
        self[piece] = (*(-ord(letter) for letter in piece.replace(MARK, "</w>")), 1)
        return self[piece]
