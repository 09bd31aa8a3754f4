"""The paired bootstrap of BLEU, against sacrebleu's scores and resampling by hand."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from kdx.errors import KdxError
from kdx.report.randomisation import TRIALS, bleu_of, paired_randomisation, score

SIGNATURE = "sacrebleu, greedy translations: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"

rng = random.Random(0)
REFERENCES = [" ".join(rng.choices("abcdefgh", k=8)) for _ in range(60)]


def noisy(share: float, seed: int) -> list[str]:
    """The references with so many of their words replaced."""
    draw = random.Random(seed)
    return [" ".join(w if draw.random() > share else "x" for w in line.split()) for line in REFERENCES]


@pytest.mark.parametrize(
    "metric",
    [
        BLEU(tokenize="none", force=True),
        BLEU(lowercase=True),
        BLEU(smooth_method="floor", smooth_value=0.1, effective_order=True),
    ],
)
def test_a_signature_gives_back_its_scorer(metric: BLEU) -> None:
    metric.corpus_score(REFERENCES, [REFERENCES])
    signature = str(metric.get_signature())
    again = bleu_of(signature)
    again.corpus_score(REFERENCES, [REFERENCES])
    assert str(again.get_signature()) == signature


@pytest.mark.parametrize("text", ["", "mean over target words", "nrefs:1|case:mixed"])
def test_another_text_is_no_signature(text: str) -> None:
    with pytest.raises(KdxError, match="is no signature of BLEU"):
        bleu_of(text)


def test_the_score_is_sacrebleus() -> None:
    lines = noisy(0.2, 1)
    assert score(lines, REFERENCES, SIGNATURE) == BLEU(tokenize="none").corpus_score(lines, [REFERENCES]).score
    with pytest.raises(KdxError, match="59 translations, but 60 references"):
        score(lines[1:], REFERENCES, SIGNATURE)


def test_a_better_system_is_told_apart_and_an_equal_one_is_not() -> None:
    systems = {"base": noisy(0.3, 1), "better": noisy(0.1, 2), "same": noisy(0.3, 3)}
    found = paired_randomisation(systems, "base", REFERENCES, SIGNATURE)
    assert set(found) == {"better", "same"}
    assert found["better"].p < 0.01 and found["better"].gain > 10
    assert found["same"].p > 0.05
    assert found["better"].sentences == 60 and found["better"].samples == TRIALS
    assert found["better"].gain == pytest.approx(
        score(systems["better"], REFERENCES, SIGNATURE) - score(systems["base"], REFERENCES, SIGNATURE)
    )


def test_the_p_value_is_that_of_resampling_by_hand() -> None:
    one, other = noisy(0.3, 1), noisy(0.27, 2)
    (found,) = paired_randomisation({"a": one, "b": other}, "a", REFERENCES, SIGNATURE).values()
    draw = np.random.default_rng(7)
    differences = []
    for _ in range(500):
        chosen = draw.integers(len(REFERENCES), size=len(REFERENCES))
        references = [REFERENCES[i] for i in chosen]
        scores = [score([lines[i] for i in chosen], references, SIGNATURE) for lines in (one, other)]
        differences.append(abs(scores[1] - scores[0]))
    shifted = np.array(differences) - np.mean(differences)
    by_hand = float((shifted > abs(found.gain)).mean())
    assert found.p == pytest.approx(by_hand, abs=0.05)


def test_it_comes_out_the_same_each_time() -> None:
    systems = {"a": noisy(0.3, 1), "b": noisy(0.27, 2)}
    first = paired_randomisation(systems, "a", REFERENCES, SIGNATURE)
    assert paired_randomisation(systems, "a", REFERENCES, SIGNATURE) == first
