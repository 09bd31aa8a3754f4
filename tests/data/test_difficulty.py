"""What a corpus declares is what its class has; a grid takes it in `data`, and a report knows its slices."""

import dataclasses
from random import Random

import pytest
from pydantic import ValidationError

from kdx.data.corpora import BUILT_IN
from kdx.data.difficulty import EDGES, all_options, options_of, slice_names, slices_of
from kdx.data.examples import ExamplesOneByOne
from kdx.grid.cell_selector import factors
from kdx.grid.identity import canonical, resolved
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.sections import Data
from kdx.grid.spec import CellSpec
from kdx.report.statistics.metric import Metric
from kdx.vocabulary import Direction

DIFFICULT = [name for name, made in BUILT_IN.items() if isinstance(made, ExamplesOneByOne)]
FIXED = {field.name for field in dataclasses.fields(ExamplesOneByOne)}


@pytest.mark.parametrize("corpus", DIFFICULT)
def test_a_corpus_declares_every_field_of_its_own_with_its_default_and_a_description(corpus):
    declared = {one.name: one for one in options_of(corpus)}
    fields = {field.name: field.default for field in dataclasses.fields(BUILT_IN[corpus]) if field.name not in FIXED}
    assert {name: one.default for name, one in declared.items()} == fields and declared
    assert BUILT_IN[corpus].fault() is None
    for one in declared.values():
        assert one.description.startswith(f"Of {corpus}: ") and one.description.endswith(".")
        assert bool(one.words) != (one.minimum is not None)
        assert one.default in one.words if one.words else one.default >= one.minimum


def test_what_is_not_generated_declares_nothing():
    assert options_of("multi30k") == options_of("synthetic-sets") == options_of("absent") == ()


def test_a_name_means_a_number_in_every_corpus_or_a_word_in_every_one():
    for corpora in all_options().values():
        assert len({bool(one.words) for one in corpora.values()}) == 1


@pytest.mark.parametrize("corpus", DIFFICULT)
def test_data_has_the_defaults_of_its_corpus_and_nothing_of_another(corpus):
    data = Data(corpus=corpus)
    own = {one.name: one.default for one in options_of(corpus)}
    assert {name: data.option(name) for name in all_options()} == {name: own.get(name) for name in all_options()}
    assert data == Data(corpus=corpus, **own)
    assert {name: value for name, value in data.model_dump().items() if name in all_options()} == own
    assert Data.model_validate(data.model_dump()) == data


def fault(**data) -> tuple[tuple, str, str | None]:
    with pytest.raises(ValidationError) as caught:
        Data(**data)
    (one,) = caught.value.errors()
    context = one.get("ctx", {})
    return (*one["loc"], *filter(None, [context.get("field")])), one["msg"], context.get("allowed")


def test_a_key_that_is_out_of_range_or_of_another_corpus_is_refused_where_it_stands():
    assert fault(corpus="recall", pairs=0) == (("pairs",), "`0` as pairs of recall", "1 or more")
    assert fault(corpus="addition", order="reverse")[0] == ("order",)
    assert fault(corpus="recall", pairs="3")[0] == fault(corpus="recall", pairs=True)[0] == ("pairs",)
    where, problem, _ = fault(corpus="copy", pairs=3)
    assert where == ("pairs",) and problem == "corpus `copy` has no such setting, which is of recall"
    assert (
        fault(corpus="synthetic-sets", digits=3)[1]
        == "corpus `synthetic-sets` has no such setting, which is of addition"
    )


def test_difficulty_is_part_of_a_cell_that_has_it_and_of_no_other():
    easy, hard = (
        CellSpec.model_validate({"task": "answer", "data": {"corpus": "recall", "pairs": pairs}}) for pairs in (8, 4)
    )
    assert '"pairs":8' in canonical(easy) and canonical(easy) != canonical(hard)
    assert canonical(CellSpec.model_validate({"task": "answer", "data": {"corpus": "recall"}})) == canonical(easy)
    assert resolved(canonical(easy))["data"]["pairs"] == 8
    other = CellSpec.model_validate({"task": "set", "data": {"corpus": "synthetic-sets"}})
    assert not set(all_options()) & set(other.model_dump()["data"])
    assert not set(all_options()) & set(resolved(canonical(other))["data"])
    assert "data.pairs" in factors()


@pytest.mark.parametrize("corpus", DIFFICULT)
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
    assert len(names) == len(EDGES) == 12
    ends = [[int(end) for end in name.removeprefix("pairs=").split("-")] for name in names]
    assert [value for low, *_, high in (end * 2 for end in ends) for value in range(low, high + 1)] == list(range(1025))


def test_a_table_may_have_a_slice_for_its_metric():
    metric = Metric("accuracy/pairs=5-8", Direction.MAX)
    assert (metric.unit, metric.recorded) == ("accuracy/pairs=5-8", "test/accuracy/pairs=5-8")
