"""Translations exchanged at random, against sacrebleu's scores and exchanges by hand; which differences are tested."""

import random
from functools import partial

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sweeps import cell, run, sweep

from kdx.errors import KdxError
from kdx.report.table import bleu_randomisation
from kdx.report.table.bleu_randomisation import (
    TRIALS,
    Randomisation,
    bleu_of,
    paired_randomisation,
    randomise,
    score,
)
from kdx.report.tables import Table, tables
from kdx.store.records import Provenance

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
    result = paired_randomisation(systems, "base", REFERENCES, SIGNATURE)
    assert set(result) == {"better", "same"}
    assert result["better"].p < 0.01 and result["better"].gain > 10
    assert result["same"].p > 0.05
    assert result["better"].sentences == 60 and result["better"].trials == TRIALS
    assert result["better"].gain == pytest.approx(
        score(systems["better"], REFERENCES, SIGNATURE) - score(systems["base"], REFERENCES, SIGNATURE)
    )


def test_the_p_value_is_that_of_exchanges_by_hand() -> None:
    """Two-sided: as far from 0 as what was seen, either way."""
    each, other = noisy(0.3, 1), noisy(0.27, 2)
    (result,) = paired_randomisation({"a": each, "b": other}, "a", REFERENCES, SIGNATURE).values()
    draw = np.random.default_rng(7)
    as_far = 0
    for _ in range(500):
        exchanged = draw.random(len(REFERENCES)) < 0.5
        pairs = [(b, a) if swap else (a, b) for a, b, swap in zip(each, other, exchanged, strict=True)]
        first, second = (score(list(lines), REFERENCES, SIGNATURE) for lines in zip(*pairs, strict=True))
        as_far += abs(second - first) >= abs(result.gain)
    assert result.p == pytest.approx(as_far / 500, abs=0.05)


@pytest.mark.long
def test_a_true_null_is_rejected_as_often_as_the_level_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The p-value of sacrebleu's paired bootstrap rejects 8% and more of them."""
    monkeypatch.setattr(bleu_randomisation, "TRIALS", 500)
    rejected = 0
    for draw in range(300):
        systems = {"a": noisy(0.3, 2 * draw), "b": noisy(0.3, 2 * draw + 1)}
        (result,) = paired_randomisation(systems, "a", REFERENCES, SIGNATURE).values()
        rejected += result.p < 0.05
    # 15 of 300 are expected; more than 24 come once in a hundred times.
    assert rejected <= 24


def test_it_comes_out_the_same_each_time() -> None:
    systems = {"a": noisy(0.3, 1), "b": noisy(0.27, 2)}
    first = paired_randomisation(systems, "a", REFERENCES, SIGNATURE)
    assert paired_randomisation(systems, "a", REFERENCES, SIGNATURE) == first


LINES = {10: noisy(0.4, 10), 11: noisy(0.3, 11), 20: noisy(0.1, 20), 21: noisy(0.15, 21)}
SCORES = {id: score(text, REFERENCES, SIGNATURE) for id, text in LINES.items()}


def table_of(seeds: int = 2, *, lines=LINES, references=REFERENCES, signatures=(), **requests: object) -> Table:
    """Two cells of translation and one of another task, with their randomisations."""
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", "prediction", kernel="rbf")]
    runs = [
        run("a", 0, 1.0, SCORES[10], id=10),
        run("a", 1, 2.0, SCORES[11], id=11),
        run("b", 0, 2.0, SCORES[20], id=20),
        run("b", 1, 1.0, SCORES[21], id=21),
        run("c", 0, 1.0, 2.0, id=30),
    ]
    defined = dict.fromkeys(LINES, SIGNATURE) | dict(signatures)
    known = {id: Provenance(None, None, None, {"test/bleu": signature}) for id, signature in defined.items()}
    table = {"name": "t", "rows": ["kernel"], "where": {"task": "translation"}, **requests}
    record = sweep(cells, [each for each in runs if each.seed < seeds], tables=[table], provenance=known)
    over_sentences = partial(randomise, sweep=record, lines=lines, references=lambda data: references)
    return tables(record, randomise=over_sentences)[0]


def test_the_selected_runs_are_compared() -> None:
    result: dict[tuple[int, int], Randomisation] = dict(table_of().randomisations)
    assert result.keys() == {(0, 0)}, "the best stands against nothing"
    assert result[0, 0].gain == pytest.approx(SCORES[11] - SCORES[20]) and result[0, 0].p < 0.05


def test_runs_of_one_seed_are_compared_with_a_declared_baseline() -> None:
    """Sentences tell what a single seed cannot; a best that others could stand against takes two."""
    assert table_of(seeds=1).randomisations == {}
    table = table_of(seeds=1, baseline={"kernel": "rbf"})
    (difference,) = table.differences
    assert difference.estimate is None
    assert table.randomisations[difference.at].gain == pytest.approx(SCORES[20] - SCORES[10])


def test_other_metrics_and_runs_without_translations_or_of_another_scorer_are_left_as_they_are() -> None:
    assert table_of(metric="perplexity").randomisations == {}
    assert table_of(lines={11: LINES[11]}).randomisations == {}
    assert table_of(signatures={11: SIGNATURE.replace("tok:none", "tok:13a")}).randomisations == {}


def test_other_references_than_the_runs_own_are_refused() -> None:
    with pytest.raises(KdxError) as caught:
        table_of(references=REFERENCES[::-1])
    assert str(caught.value).startswith("the translations of run ")
    assert str(caught.value).endswith("was recorded\n  hint: prepare the corpus that it was tested on")
