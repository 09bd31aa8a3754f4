"""Which differences of a table get a randomisation of sentences, and from which translations."""

import random

import pytest
from sweeps import cell, run, sweep

from kdx.errors import KdxError
from kdx.report.statistics.randomisation import score
from kdx.report.table.bleu_randomisation import Translated, compared, randomised
from kdx.report.table.build import tables
from kdx.report.table.table import Table

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0"
rng = random.Random(0)
REFERENCES = [" ".join(rng.choices("abcdefgh", k=8)) for _ in range(40)]


def lines(share: float) -> list[str]:
    draw = random.Random(share)
    return [" ".join(w if draw.random() > share else "x" for w in line.split()) for line in REFERENCES]


LINES = {10: lines(0.4), 11: lines(0.3), 20: lines(0.1), 21: lines(0.15)}
BLEU = {run: score(text, REFERENCES, SIGNATURE) for run, text in LINES.items()}


def made(seeds: int = 2, **asked: object) -> Table:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential")]
    runs = [
        run("a", 0, 1.0, BLEU[10], id=10),
        run("a", 1, 2.0, BLEU[11], id=11),
        run("b", 0, 2.0, BLEU[20], id=20),
        run("b", 1, 1.0, BLEU[21], id=21),
    ]
    runs = [one for one in runs if one.seed < seeds]
    return tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **asked}]))[0]


def translated(**changed: object) -> dict[int, Translated]:
    return {
        run: Translated(**{"lines": text, "references": REFERENCES, "signature": SIGNATURE, **changed})
        for run, text in LINES.items()
    }


def test_the_selected_runs_are_compared() -> None:
    table = made()
    assert compared([table]) == {11: "a", 20: "b"}
    (one,) = randomised(table, translated()).differences
    assert (one.at, one.against) == ((0, 0), (1, 0)), "the best stands against nothing"
    assert one.randomisation and one.randomisation.gain == pytest.approx(BLEU[11] - BLEU[20])
    assert one.randomisation.p < 0.05


def test_runs_of_one_seed_are_compared_with_a_declared_baseline() -> None:
    """Sentences tell what a single seed cannot; a best that others could stand against takes two."""
    assert compared([made(seeds=1)]) == {}
    table = made(seeds=1, baseline={"kernel": "rbf"})
    assert compared([table]) == {10: "a", 20: "b"}
    (one,) = randomised(table, translated()).differences
    assert one.estimate is None
    assert one.randomisation and one.randomisation.gain == pytest.approx(BLEU[20] - BLEU[10])


def test_only_bleu_is_resampled() -> None:
    assert compared([made(metric="perplexity")]) == {}


def test_runs_without_translations_or_of_another_scorer_are_left_as_they_are() -> None:
    table = made()
    assert randomised(table, {11: translated()[11]}).differences[0].randomisation is None
    other = {**translated(), 11: translated(signature=SIGNATURE.replace("tok:none", "tok:13a"))[11]}
    recorded = score(LINES[11], REFERENCES, other[11].signature)
    if recorded == BLEU[11]:
        assert randomised(table, other).differences[0].randomisation is None


def test_other_references_than_the_runs_own_are_refused() -> None:
    with pytest.raises(KdxError) as caught:
        randomised(made(), translated(references=REFERENCES[::-1]))
    assert str(caught.value).startswith("the translations of run ")
    assert str(caught.value).endswith("was recorded\n  hint: prepare the corpus that it was tested on")
