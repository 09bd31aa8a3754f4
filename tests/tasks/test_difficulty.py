"""What a corpus declares is what its class has; a grid takes it in `data`, and a report knows its slices."""

import dataclasses
import json
from dataclasses import replace
from random import Random

import pytest
from pydantic import ValidationError

from kdx.data.examples import ExamplesOneByOne
from kdx.grid.cell_selector import factors
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.sections import Data
from kdx.grid.spec import CellSpec
from kdx.report.statistics.metric import Metric
from kdx.tasks import TASKS
from kdx.tasks.corpora import BUILT_IN, DIFFICULTIES, options_of_corpora
from kdx.tasks.difficulty import EDGES, slice_name, slice_names, slices_of
from kdx.words.option import options_of

OTHERS = set(options_of_corpora())
FIXED = {field.name for field in dataclasses.fields(ExamplesOneByOne)}


@pytest.mark.parametrize("corpus", DIFFICULTIES)
def test_what_is_known_of_a_corpus_is_what_its_class_says(corpus):
    known, made = DIFFICULTIES.definition(corpus), BUILT_IN[corpus]
    declared = {one.name: one for one in known.options}
    assert {name: replace(one, title="") for name, one in declared.items()} == options_of(type(made))
    fields = {field.name for field in dataclasses.fields(made)} - FIXED
    assert fields == declared.keys() and declared
    assert {name: getattr(made, name) for name in fields} == {name: one.default for name, one in declared.items()}
    assert made.task == known.task and known.title
    assert made.fault() is None
    for one in declared.values():
        assert one.title.endswith(".")
        assert one.value(one.default) == one.default


def test_every_corpus_that_is_drawn_one_by_one_has_a_definition():
    assert [name for name, made in BUILT_IN.items() if isinstance(made, ExamplesOneByOne)] == list(DIFFICULTIES)
    assert slices_of("multi30k") == slices_of("synthetic-sets") == slices_of("absent") == ()


def test_a_class_refuses_what_an_option_cannot_be():
    with pytest.raises(ValueError, match="pairs: 0; allowed: a whole number from 1 on"):
        DIFFICULTIES["recall"](pairs=0)
    assert DIFFICULTIES["recall"](pairs=3).pairs == 3


def test_a_name_means_a_number_in_every_corpus_or_a_word_in_every_one():
    for declared in options_of_corpora().values():
        assert len({bool(one.words) for one in declared}) == 1


@pytest.mark.parametrize("corpus", DIFFICULTIES)
def test_data_has_the_defaults_of_its_corpus_and_nothing_of_another(corpus):
    data = Data(corpus=corpus)
    own = {one.name: one.default for one in DIFFICULTIES.definition(corpus).options}
    assert data.options == own
    assert data == Data(corpus=corpus, **own) == Data(corpus=corpus, **own, **dict.fromkeys(OTHERS - own.keys()))
    assert {name: value for name, value in data.model_dump().items() if name in options_of_corpora()} == own
    assert Data.model_validate(data.model_dump()) == data


def fault(**data) -> tuple[tuple, str, str | None]:
    with pytest.raises(ValidationError) as caught:
        Data(**data)
    (one,) = caught.value.errors()
    context = one.get("ctx", {})
    return (*one["loc"], *filter(None, [context.get("field", context.get("key"))])), one["msg"], context.get("allowed")


def test_a_key_that_is_out_of_range_is_refused_where_it_stands():
    assert fault(corpus="recall", pairs=0) == (("pairs",), "`0` as pairs", "a whole number from 1 on")
    assert fault(corpus="addition", order="reverse")[0] == ("order",)
    assert fault(corpus="recall", pairs="3")[0] == fault(corpus="recall", pairs=True)[0] == ("pairs",)


def test_a_key_that_no_corpus_has_is_refused_and_one_of_another_corpus_comes_to_nothing():
    where, problem, allowed = fault(corpus="copy", paris=3)
    assert where == ("paris",) and problem == "unknown key" and {"seed", "length", "symbols"} <= set(allowed)
    assert Data(corpus="copy", pairs=3) == Data(corpus="copy")
    assert Data(corpus="synthetic-sets", digits=3) == Data(corpus="synthetic-sets")


def test_difficulty_is_part_of_a_cell_that_has_it_and_of_no_other():
    easy, hard = (
        CellSpec.model_validate({"task": "answer", "data": {"corpus": "recall", "pairs": pairs}}) for pairs in (8, 4)
    )
    assert '"pairs":8' in easy.text and easy.text != hard.text
    assert CellSpec.model_validate({"task": "answer", "data": {"corpus": "recall"}}).text == easy.text
    assert json.loads(easy.text)["data"]["pairs"] == 8
    other = CellSpec.model_validate({"task": "set", "data": {"corpus": "synthetic-sets"}})
    assert not set(options_of_corpora()) & set(other.model_dump()["data"])
    assert "data.pairs" in factors()


@pytest.mark.parametrize("corpus", DIFFICULTIES)
def test_a_corpus_declares_the_slices_that_its_examples_have(corpus):
    made = BUILT_IN[corpus]
    assert made.slices == slices_of(corpus) == tuple(made.draw(Random(0)).slices)
    cell = ResolvedSpec.of(CellSpec.model_validate({"task": made.task, "data": {"corpus": corpus}}))
    known = cell.test_metrics
    for respect in made.slices:
        assert known[f"accuracy/{respect}=5-8"] == known["accuracy"]
    assert "accuracy/nothing=1" not in known


def test_slices_are_few_and_every_value_is_in_one():
    names = slice_names("pairs")
    assert names[:6] == ("pairs=0", "pairs=1", "pairs=2", "pairs=3-4", "pairs=5-8", "pairs=9-16")
    assert len(names) == len(EDGES) == len(set(names)) == 32
    ends = [[int(end) for end in name.removeprefix("pairs=").split("-")] for name in names]
    assert [low for low, *_ in ends[1:]] == [high + 1 for *_, high in ends[:-1]]
    assert (ends[0], ends[-1][-1]) == ([0], 2**30)
    for value in range(1025):
        low, *_, high = slice_ends(slice_name("pairs", value))
        assert low <= value <= high


def slice_ends(name: str) -> list[int]:
    return 2 * [int(end) for end in name.removeprefix("pairs=").split("-")]


@pytest.mark.parametrize("task", [task for task in TASKS.definitions() if task.slicings], ids=lambda task: task.word)
def test_a_task_of_text_has_the_slices_of_its_metrics_and_no_others(task):
    data = {"corpus": "multi30k" if task.word == "translation" else "wikitext2"}
    sizes = {"length": 32} if task.data.streams else {}
    cell = ResolvedSpec.of(CellSpec.model_validate({"task": task.word, "data": data, "training": sizes}))
    sliced = {name: good for name, good in cell.test_metrics.items() if "/" in name}
    for one in task.slicings:
        for metric in one.metrics:
            assert sliced.pop(f"{metric}/{one.respect}=5-8") == task.test_metrics[metric]
    respects = {one.respect for one in task.slicings}
    assert {name.partition("/")[2].partition("=")[0] for name in sliced} == respects
    assert not any(name.startswith(("loss/", "accuracy/")) for name in sliced)


def test_a_table_may_have_a_slice_for_its_metric():
    metric = Metric("accuracy/pairs=5-8", TASKS.definition("answer").metrics["accuracy"])
    assert (metric.unit, metric.recorded) == ("accuracy/pairs=5-8", "test/accuracy/pairs=5-8")
    assert metric.whole == "accuracy" and not metric.in_nats
    perplexity = TASKS.definition("prediction").metrics["perplexity"]
    sliced = Metric("perplexity/context=5-8", perplexity)
    assert sliced.in_nats and (sliced.whole, Metric("valid/perplexity", perplexity).whole) == ("perplexity",) * 2
