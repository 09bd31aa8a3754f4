"""Names that the field uses otherwise."""

import re

import pytest

from kdx.grid.cell_selector import factors, settings
from kdx.grid.explain import explain
from kdx.grid.model import GRID
from kdx.grid.synonyms import EXPLAINED, SYNONYMS, did_you_mean

KEYS = {*factors(), *settings(), *GRID}


def test_every_synonym_names_a_key_or_a_word_that_exists():
    explained = [name for sentence in EXPLAINED.values() for name in re.findall("`(.*?)`", sentence)]
    for name in [*explained, *(meant for names in SYNONYMS.values() for meant in names)]:
        key, _, word = name.partition(": ")
        assert key in KEYS, name
        assert not word or any(word in meaning.values for meaning in explain(key)), name


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("rope", ["cope", "rotary"], "did you mean `rotary`?"),
        ("d-model", ["width", "heads"], "did you mean `width`?"),
        ("layers", ["axes", "model"], "did you mean `model.encoder_layers` or `model.decoder_layers`?"),
        ("lr", ["beam", "length"], None),
        ("steps", ["from", "to", "step"], "did you mean `step`?"),
        ("epochs", ["beam", "length"], None),
        ("model.n_layers", ["model.decoder_layers"], "did you mean `model.decoder_layers`?"),
        ("num-epochs", ["steps"], "kdx counts optimiser steps, not epochs: `training.steps`"),
        ("rotery", ["cope", "rotary"], "did you mean `rotary`?"),
    ],
)
def test_a_name_of_the_field_comes_before_one_of_like_spelling(word, known, hint):
    assert did_you_mean(word, known) == hint
