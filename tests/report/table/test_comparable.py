"""Which numbers compare, and which share neither a best, nor a mark, nor a difference."""

from dataclasses import replace
from typing import Any

import pytest
from sweeps import cell, marks, metric_of, seeded, sweep

from kdx.grid.plan import TableSpec
from kdx.report.sheets.notes import caption
from kdx.report.table.comparable import traits_of
from kdx.report.table.comparisons import Mark
from kdx.report.table.layout import Layout, lay_out
from kdx.report.tables import Table, tables
from kdx.store.records import Provenance, SweepRecord

FACTS = {
    "vocabulary": "a" * 32,
    "vocabulary_size": 1234,
    "tokenisation": "words",
    "test/unknown_rate": 0.0123,
    "valid/unknown_rate": 0.0456,
    "test/text": "b" * 32,
    "valid/text": "c" * 32,
    "test/source_text": "d" * 32,
    "test/content": "e" * 32,
}
SLICE = "test/perplexity/context=5-8"
METRICS = ("test/bits_per_byte", "test/loss", "test/word_perplexity", "test/bleu_detokenised", SLICE)


def recorded(*facts: dict[str, Any] | None, task: str = "prediction", **requests: Any) -> SweepRecord:
    """A cell for each of these facts, approaches x, y, …, with the same settings and two seeds."""
    cells = [cell(name, task, labels={"approach": name}) for name, _ in zip("xyz", facts, strict=False)]
    provenance, runs = {}, []
    for values, known in zip(cells, facts, strict=True):
        mean = 4.0 + len(runs)
        runs += (parts := seeded(values.id, mean, mean + 0.01))
        provenance |= {each.id: Provenance("d", "c", {}, {}, None, known) for each in parts}
    metrics = {run.id: dict.fromkeys(METRICS, run.test_score) for run in runs}
    table = {"name": "t", "rows": ["approach"], **requests}
    return sweep(cells, runs, tables=[table], provenance=provenance, metrics=metrics)


def table_of(record: SweepRecord) -> Table:
    (table,) = tables(record)
    return table


def apart(table: Table) -> list[str]:
    """Why cells are not compared; they then share nothing."""
    topics = [each.topic for each in table.audit if not each.compared]
    assert bool(table.differences) is not bool(topics)
    assert (Mark.BEST in marks(table)) is not bool(topics)
    assert not topics or not table.marks
    return topics


PER_TOKEN = ["vocabulary", "tokenisation", "test text"]


@pytest.mark.parametrize(
    ("task", "metric", "topics"),
    [
        ("prediction", "perplexity", PER_TOKEN),
        ("prediction", "loss", PER_TOKEN),
        ("translation", "loss", [*PER_TOKEN, "test source text"]),
        ("translation", "bleu", ["tokenisation", "test text", "test source text"]),
        ("translation", "bleu_detokenised", ["tokenisation", "test text", "test source text"]),
        ("prediction", "word_perplexity", ["vocabulary", "test text"]),
        ("prediction", "valid/perplexity", ["vocabulary", "tokenisation", "valid text"]),
    ],
)
def test_a_metric_asks_for_the_same_of_what_it_counts_over(task: str, metric: str, topics: list[str]) -> None:
    parts = {
        "vocabulary": "vocabulary",
        "tokenisation": "tokenisation",
        "test text": "test/text",
        "valid text": "valid/text",
        "test source text": "test/source_text",
    }
    keys = FACTS if task == "translation" else {key: FACTS[key] for key in FACTS if "source" not in key}

    def unequal(fact: str) -> list[str]:
        return apart(table_of(recorded(dict(keys), {**keys, fact: "other"}, task=task, metric=metric)))

    for topic, fact in parts.items():
        if fact in keys:
            assert unequal(fact) == ([topic] if topic in topics else [])
    assert apart(table_of(recorded(dict(keys), dict(keys), task=task, metric=metric))) == []


def layout(record: SweepRecord, metric: str) -> Layout:
    """The first table as if it showed this metric."""
    (result,) = lay_out(record, [TableSpec.model_validate(record.grid["tables"][0])])
    values = metric_of(metric)
    return replace(result, places={at: replace(each, metric=values) for at, each in result.places.items()})


def topics(metric: str, facts: dict[str, Any]) -> list[str]:
    record = recorded(facts)
    ((*result, context),) = traits_of(layout(record, metric), record).values()
    assert context.topic == "evaluation context"
    return [each.topic for each in result]


PER_WORD = ["vocabulary", "test text", "test source text", "test examples"]


@pytest.mark.parametrize(
    ("metric", "facts", "expected"),
    [
        ("bits_per_byte", FACTS, PER_WORD[1:]),
        # An unknown word costs next to nothing.
        ("word_perplexity", FACTS, PER_WORD),
        ("word_perplexity", {**FACTS, "test/unknown_rate": 0.0}, PER_WORD[1:]),
        ("word_perplexity", {**FACTS, "test/unknown_rate": None}, PER_WORD[1:]),
        # Words of a frequency are the same only in one training text.
        ("perplexity/frequency=5-8", FACTS, ["vocabulary", "tokenisation", *PER_WORD[1:], "training text"]),
        # A slice asks for what the whole does.
        ("perplexity/context=5-8", FACTS, ["vocabulary", "tokenisation", *PER_WORD[1:]]),
        ("bleu/source-words=1", FACTS, ["tokenisation", *PER_WORD[1:]]),
        ("accuracy", {"test/content": "e" * 32}, ["test examples"]),
    ],
)
def test_a_metric_compares_where_these_are_the_same(metric: str, facts: dict[str, Any], expected: list[str]) -> None:
    assert topics(metric, facts) == expected


def test_a_vocabulary_is_listed_by_its_size_and_what_it_does_not_know() -> None:
    table = table_of(recorded(FACTS, {**FACTS, "vocabulary": "f" * 32, "vocabulary_size": 9, "test/unknown_rate": 0.2}))
    assert (
        "Not compared with each other (prediction, perplexity), for unequal vocabulary: 1,234 tokens (aaaaaa), 1.2% of "
        "the test unknown in x; 9 tokens (ffffff), 20.0% of the test unknown in y; metric: bits_per_byte in a table "
        "compares them."
    ) in caption(table, best="*")


def test_bits_per_byte_are_proposed_only_where_they_would_compare() -> None:
    def proposed(record: SweepRecord) -> list[str]:
        return [each.instead for each in table_of(record).audit if not each.compared]

    other = {**FACTS, "vocabulary": "f"}
    assert proposed(recorded(FACTS, other)) == ["bits_per_byte"]
    by_slice = recorded(FACTS, other, metric=SLICE.removeprefix("test/"))
    assert proposed(by_slice) == [""], "they are not told by slice"
    assert proposed(recorded(FACTS, {**other, "tokenisation": "bytes"})) == ["bits_per_byte"] * 2
    assert proposed(recorded(FACTS, {**other, "test/text": "f"})) == ["", ""], "of other text they would not, either"
    assert proposed(replace(recorded(FACTS, other), metrics={})) == [""], "nobody recorded them"


def test_of_three_cells_the_two_that_compare_share_a_best() -> None:
    table = table_of(recorded(FACTS, {**FACTS, "vocabulary": "f"}, FACTS))
    assert marks(table) == [
        Mark.BEST,
        None,
        None,
    ]
    assert [(difference.at, difference.against) for difference in table.differences] == [((2, 0), (0, 0))]
    assert table.legend[Mark.BEST] == "best mean of its column, among cells whose numbers compare"
    assert [(group.cells, group.comparisons) for group in table.groups] == [(2, 1), (1, 0)]


def test_a_baseline_of_other_numbers_is_no_baseline() -> None:
    table = table_of(recorded(FACTS, {**FACTS, "vocabulary": "f"}, FACTS, baseline={"approach": "x"}))
    assert [(difference.at, difference.against) for difference in table.differences] == [((2, 0), (0, 0))]


def test_other_settings_with_the_same_recorded_facts_compare() -> None:
    """More training text, or the same corpus under another name, makes no other number of the test."""
    cells = [
        cell(name, "prediction", labels={"approach": name}, data={"corpus": name, "train_lines": lines})
        for name, lines in (("x", 10), ("y", 20))
    ]
    runs = [*seeded("x", 4.0, 4.01), *seeded("y", 5.0, 5.01)]
    table = {"name": "t", "rows": ["approach"]}
    facts = {run.id: Provenance("d", "c", {}, {}, None, FACTS) for run in runs}
    known = table_of(sweep(cells, runs, tables=[table], provenance=facts))
    assert apart(known) == []
    assert {each.topic for each in known.audit} == {"data.corpus", "data.train_lines"}, "but a reader is told"
    assert apart(table_of(sweep(cells, runs, tables=[table]))) == ["data.corpus", "data.train_lines"]


def test_where_some_cells_recorded_no_facts_the_settings_decide() -> None:
    """Cells without facts would otherwise differ from all others."""
    assert apart(table_of(recorded(FACTS, None))) == []
    assert apart(table_of(recorded({**FACTS, "vocabulary": "f"}, None))) == []
    assert apart(table_of(recorded(FACTS, {}))) == []


@pytest.mark.parametrize(
    ("here", "there", "same"),
    [
        ({"memory": 0}, {"memory": 8}, False),
        ({"memory": 8, "evaluation": {"memory": 0}}, {"memory": 0}, True),
        ({"memory": 8}, {"memory": 16, "evaluation": {"memory": 8}}, True),
        ({"evaluation": {"length": 64}}, {"evaluation": {"length": 128}}, False),
        ({"evaluation": {"streams": 4}}, {"evaluation": {"streams": 8}}, False),
        ({"training": {"length": 32, "batch_tokens": 320}}, {"training": {"length": 64, "batch_tokens": 640}}, False),
        (
            {"training": {"length": 32, "batch_tokens": 320}, "evaluation": {"length": 64, "streams": 10}},
            {"training": {"length": 64, "batch_tokens": 640}},
            True,
        ),
        ({"training": {"steps": 10, "batch_tokens": 1280}}, {"training": {"steps": 20, "batch_tokens": 1280}}, True),
    ],
)
def test_a_stream_is_read_in_the_same_context_for_its_perplexities_to_compare(
    here: dict[str, Any], there: dict[str, Any], same: bool
) -> None:
    cells = [
        cell(name, "prediction", labels={"approach": name}, **values) for name, values in (("x", here), ("y", there))
    ]
    runs = [*seeded("x", 4.0, 4.01), *seeded("y", 5.0, 5.01)]
    for facts in (None, FACTS):
        provenance = {run.id: Provenance("d", "c", {}, {}, None, facts) for run in runs}
        record = sweep(cells, runs, tables=[{"name": "t", "rows": ["approach"]}], provenance=provenance)
        assert apart(table_of(record)) == ([] if same else ["evaluation context"])


def test_the_context_is_listed_in_words() -> None:
    cells = [cell(f"m{memory}", "prediction", memory=memory) for memory in (0, 8)]
    runs = [*seeded("m0", 4.0, 4.01), *seeded("m8", 5.0, 5.01)]
    (result,) = table_of(sweep(cells, runs, tables=[{"name": "t", "rows": ["memory"]}])).audit
    assert list(result.values) == ["10 streams, 128 tokens, memory 0", "10 streams, 128 tokens, memory 8"]


def test_how_sentences_are_translated_is_no_context() -> None:
    cells = [cell(f"b{beam}", evaluation={"beam": beam}) for beam in (1, 4)]
    runs = [*seeded("b1", 4.0, 4.01), *seeded("b4", 5.0, 5.01)]
    assert apart(table_of(sweep(cells, runs, tables=[{"name": "t", "rows": ["evaluation.beam"]}]))) == []


def test_what_keeps_cells_apart_is_listed_of_each_column_where_it_does() -> None:
    """In columns of their own nobody compares them."""
    cells = [cell(f"{k}{n}", data={"corpus": n}, kernel=k) for n in ("one", "two") for k in ("rbf", "linear")]
    runs = [each for values in cells for each in seeded(values.id, 4.0, 4.01)]

    def apart_for(**requests: Any) -> list[str]:
        table = table_of(sweep(cells, runs, tables=[{"name": "t", **requests}]))
        return [each.topic for each in table.audit if not each.compared]

    in_columns = {"rows": ["kernel"], "columns": ["data.corpus"]}
    assert apart_for(**in_columns) == []
    assert apart_for(**in_columns, baseline={"kernel": "rbf"}) == []
    assert apart_for(**in_columns, baseline={"data.corpus": "one"}) == ["data.corpus"], "unless against a baseline"
    assert apart_for(rows=["data.corpus"], columns=["kernel"]) == ["data.corpus"]
    assert apart_for(rows=["kernel", "data.corpus"]) == ["data.corpus"]
