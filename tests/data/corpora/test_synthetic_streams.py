import numpy as np

from kdx.data.corpora.synthetic_streams import (
    CUE,
    EVERY,
    EXAMPLES,
    LENGTHS,
    LONGEST,
    NO_TIME,
    WORDS,
    make,
)
from kdx.vocabulary import Modality, Split

DRAWN = EXAMPLES.generate("any", 0, Split.TRAIN, 400)
TIMES = {name: DRAWN.inputs[f"{name}_times"] for name in Modality}


def test_times_rise_and_padding_lies_to_the_right():
    for name, times in TIMES.items():
        assert times.shape == (400, LENGTHS[name])
        there = times != NO_TIME
        assert (there[:, :-1] >= there[:, 1:]).all()
        assert (np.diff(times, axis=1) > 0)[there[:, 1:]].all()
        assert times.max() < LONGEST


def test_one_word_is_the_cue_and_no_word_is_said_where_there_is_none():
    words, there = DRAWN.inputs[Modality.LANGUAGE], TIMES[Modality.LANGUAGE] != NO_TIME
    assert ((words == CUE).sum(1) == 1).all()
    assert ((words > 0) == there).all() and words.max() == WORDS


def test_the_class_is_what_vision_and_audio_show_when_the_cue_is_said():
    numbers = np.random.default_rng(0).random((400, EXAMPLES.draws))
    frames = sum(LENGTHS[name] for name in EVERY)
    numbers[:, -2 * frames :] = 0.5  # no noise
    examples = make(numbers)
    said = examples.inputs[Modality.LANGUAGE] == CUE
    when = examples.inputs["language_times"][said]
    target = 0
    for name, every in EVERY.items():
        shown = examples.inputs[name][np.arange(400), when // every, 0]
        assert set(shown) == {-1.0, 1.0}
        target = 2 * target + (shown > 0)
    # A state may change between the frame before the cue and the cue.
    assert (examples.targets[:, 0] == target).mean() > 0.95
