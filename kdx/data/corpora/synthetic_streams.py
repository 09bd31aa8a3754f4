"""Generated, unaligned streams of three modalities, whose class depends on simultaneous events in all of them.

Time runs from 0 to at most 48. Language has 4 to 8 words at random times, one of which is the cue. Vision has a frame
at every second time, audio at every third. Each frame is noise around one of two states, which change at different
times in the two modalities. The class, one of four, is the states of vision and of audio at the time of the cue.
"""

import numpy as np
from numpy.typing import NDArray

from kdx.data.examples import Examples, ExamplesFromNumbers, Numbers
from kdx.vocabulary import Modality, Split

SHORTEST, LONGEST = 32, 48  # units of time
FEWEST, MOST = 4, 8  # words
WORDS = 6  # of the vocabulary, from 1 on
CUE = 1
EVERY = {Modality.VISION: 2, Modality.AUDIO: 3}  # units of time from frame to frame
FEATURES = 2  # of a frame: its state and noise, and noise alone
STATE = 12  # units of time that a state lasts
NOISE = 1.5  # largest, on states of -1 and 1
NO_TIME = -1  # of padding
LENGTHS = {Modality.LANGUAGE: MOST, **{modality: LONGEST // every for modality, every in EVERY.items()}}
_STATES = LONGEST // STATE + 1


def make(numbers: Numbers) -> Examples:
    """Make the events of each modality and, as `…_times`, their times, -1 for padding; targets (N, 1).

    `language` (N, 8) are words, 0 for padding; `vision` (N, 24, 2) and `audio` (N, 16, 2) are features. Padding is on
    the right.
    """
    kinds, when, words, states, frames = np.split(numbers, np.cumsum([3, LONGEST, MOST, 2 * _STATES]), axis=1)
    length = SHORTEST + np.floor((1 + LONGEST - SHORTEST) * kinds[:, 0]).astype(np.int64)
    count = FEWEST + np.floor((1 + MOST - FEWEST) * kinds[:, 1]).astype(np.int64)
    # A sample of different times, in order.
    times = np.argsort(when + (np.arange(LONGEST) >= length[:, None]), axis=1)[:, :MOST]
    times = np.sort(np.where(np.arange(MOST) < count[:, None], times, LONGEST), axis=1)
    present = times < LONGEST
    place = np.floor(count * kinds[:, 2]).astype(np.int64)[:, None]
    language = np.where(present, CUE + 1 + np.floor((WORDS - 1) * words), 0)
    np.put_along_axis(language, place, CUE, axis=1)
    inputs: dict[str, NDArray[np.generic]] = {
        Modality.LANGUAGE: language.astype(np.int8),
        f"{Modality.LANGUAGE}_times": np.where(present, times, NO_TIME).astype(np.int8),
    }
    cue = np.take_along_axis(times, place, axis=1)
    target = np.zeros((len(numbers), 1), np.int64)
    for number, (modality, every) in enumerate(EVERY.items()):
        state = states[:, number * _STATES : (number + 1) * _STATES] < 0.5
        shift = number * STATE // 2  # so the two modalities do not change at the same time
        at = np.arange(0, LONGEST, every)
        own, frames = np.split(frames, [len(at) * FEATURES], axis=1)
        features = NOISE * (2 * own - 1).reshape(len(numbers), len(at), FEATURES)
        features[:, :, 0] += 2.0 * state[:, (at + shift) // STATE] - 1
        seen = at < length[:, None]
        inputs[modality] = np.where(seen[:, :, None], features, 0.0).astype(np.float32)
        inputs[f"{modality}_times"] = np.where(seen, at, NO_TIME).astype(np.int8)
        target = 2 * target + np.take_along_axis(state, (cue + shift) // STATE, axis=1)
    return Examples(inputs, target)


EXAMPLES = ExamplesFromNumbers(
    task="multimodal",
    sizes={Split.TRAIN: 20000, Split.VALID: 1000, Split.TEST: 1000},
    tokens=sum(LENGTHS.values()),
    classes=2 * 2,
    draws=3 + LONGEST + MOST + 2 * _STATES + FEATURES * (LENGTHS[Modality.VISION] + LENGTHS[Modality.AUDIO]),
    make=make,
)
