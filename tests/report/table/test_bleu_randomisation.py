"""Which differences of a table get a randomisation of sentences, and from which translations."""

import random

import pytest
from sweeps import cell, run, sweep

from kdx.errors import KdxError
from kdx.report.statistics.randomisation import Randomisation, score
from kdx.report.table.bleu_randomisation import Translated, Translations, compared_runs, randomised
from kdx.report.table.table import Table
from kdx.report.tables import tables
from kdx.store.records import Provenance

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


def compared(table: Table) -> dict[int, str]:
    return compared_runs(table.layout, table.differences)


def of(table: Table, translations: dict[int, Translated]) -> dict[tuple[int, int], Randomisation]:
    return randomised(table.layout, table.differences, translations)


def test_the_selected_runs_are_compared() -> None:
    table = made()
    assert compared(table) == {11: "a", 20: "b"}
    (one,) = table.differences
    assert (one.at, one.against) == ((0, 0), (1, 0)), "the best stands against nothing"
    found = of(table, translated())
    assert found.keys() == {(0, 0)}
    assert found[0, 0].gain == pytest.approx(BLEU[11] - BLEU[20])
    assert found[0, 0].p < 0.05


def test_runs_of_one_seed_are_compared_with_a_declared_baseline() -> None:
    """Sentences tell what a single seed cannot; a best that others could stand against takes two."""
    assert compared(made(seeds=1)) == {}
    table = made(seeds=1, baseline={"kernel": "rbf"})
    assert compared(table) == {10: "a", 20: "b"}
    (one,) = table.differences
    assert one.estimate is None
    assert of(table, translated())[one.at].gain == pytest.approx(BLEU[20] - BLEU[10])


def test_only_bleu_is_resampled() -> None:
    assert compared(made(metric="perplexity")) == {}


def test_runs_without_translations_or_of_another_scorer_are_left_as_they_are() -> None:
    table = made()
    assert of(table, {11: translated()[11]}) == {}
    other = {**translated(), 11: translated(signature=SIGNATURE.replace("tok:none", "tok:13a"))[11]}
    recorded = score(LINES[11], REFERENCES, other[11].signature)
    if recorded == BLEU[11]:
        assert of(table, other) == {}


def test_other_references_than_the_runs_own_are_refused() -> None:
    with pytest.raises(KdxError) as caught:
        of(made(), translated(references=REFERENCES[::-1]))
    assert str(caught.value).startswith("the translations of run ")
    assert str(caught.value).endswith("was recorded\n  hint: prepare the corpus that it was tested on")


def test_a_table_is_built_with_its_randomisations_and_asks_for_the_references_that_it_needs_alone() -> None:
    cells = [cell("a", kernel="rbf"), cell("b", kernel="exponential"), cell("c", "prediction", kernel="rbf")]
    runs = [run("a", 0, 1.0, BLEU[10], id=10), run("b", 0, 2.0, BLEU[20], id=20), run("c", 0, 1.0, 2.0, id=30)]
    known = Provenance(None, None, None, {"test/bleu": SIGNATURE})
    asked = {"name": "t", "rows": ["kernel"], "where": {"task": "translation"}, "baseline": {"kernel": "rbf"}}
    record = sweep(cells, runs, tables=[asked], provenance={10: known, 20: known})
    corpora: list[str] = []
    translations = Translations(record, LINES, lambda data: corpora.append(data.corpus) or REFERENCES)
    (table,) = tables(record, randomise=translations.randomise)
    assert table.randomisations[1, 0].gain == pytest.approx(BLEU[20] - BLEU[10])
    assert corpora == ["synthetic", "synthetic"]
