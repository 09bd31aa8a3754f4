"""What keeps a comparison from being fair is listed; what is meant to differ, or cannot matter, is not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import trials
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import cell, run, seeded, sweep

from kdx.grid.evaluations import EvaluationRequest, EvaluationSettings, resolve_evaluation
from kdx.grid.resolved_spec import ResolvedSpec
from kdx.grid.tuning import Pruner, Sampler
from kdx.report.sheets.notes import caption
from kdx.report.table.audit import (
    CHANGED,
    FAST,
    OUT,
    PARAMETERS,
    TUNED,
    UNKNOWN,
    UnequalFact,
)
from kdx.report.tables import tables
from kdx.store.records import CellRecord, EvaluationRecord, Provenance, RunRecord, RunState
from tests.grids import TSALLIS, recorded

KERNELS = ("rbf", "exponential", "polynomial")
RBF, EXP, POLY = (0, 0), (1, 0), (2, 0)


def audit(cells: Sequence[CellRecord], runs: Sequence[RunRecord], **rest: Any) -> dict[str, Mapping[str, Any]]:
    """Topic → what it is → where, of a table with a row for each cell."""
    requests = {"name": "t", "rows": rest.pop("rows", ["kernel"]), **rest.pop("options", {})}
    (table,) = tables(sweep(cells, runs, tables=[requests], **rest))
    return {each.topic: each.values for each in table.audit}


def three(*scores: Sequence[float]) -> tuple[list[CellRecord], list[RunRecord]]:
    cells = [cell(kernel, kernel=kernel) for kernel in KERNELS]
    scores = scores or ([1.0, 2.0],) * 3
    return cells, [item for each, values in zip(cells, scores, strict=True) for item in seeded(each.id, *values)]


def origin(**known: Any) -> Provenance:
    return Provenance(**{"data": "d" * 32, "code": "c" * 32, "environment": {}, "definitions": {}, **known})


def of_origins(first: Provenance, *others: Provenance) -> dict[str, Mapping[str, Any]]:
    """Two cells, of a run each; the second's come from `others`."""
    cells = [cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")]
    runs = [run("rbf", 0, 1.0, 1.0, id=1)]
    runs += [run("exponential", seed, 1.0, 1.0, id=10 + seed) for seed in range(len(others))]
    runs += [run("rbf", seed, 1.0, 1.0, id=1 + seed) for seed in range(1, len(others))]
    provenance = {each.id: first for each in runs} | {10 + seed: other for seed, other in enumerate(others)}
    return audit(cells, runs, provenance=provenance)


def test_equal_cells_have_nothing_to_tell() -> None:
    cells, runs = three()
    where = dict.fromkeys((each.id for each in runs), origin(environment={"torch": "2.12"}))
    assert audit(cells, runs, provenance=where, metrics={each.id: {PARAMETERS: 10.0} for each in runs}) == {}


def test_unequal_seeds_are_listed_the_commonest_first() -> None:
    cells, runs = three([1.0], [1.0, 2.0], [3.0, 4.0])
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"]}]))
    (result,) = table.audit
    assert result == UnequalFact(
        "seeds", "translation", table.layout.cells[0].metric, {"0–1": (EXP, POLY), "0": (RBF,)}
    )
    assert list(result.values) == ["0–1", "0"]


def test_seeds_without_a_score_do_not_count_and_a_cell_without_any_is_left_out() -> None:
    cells, runs = three([1.0, 2.0], [1.0, 2.0], [])
    lost = [run("exponential", 2, state=RunState.DIVERGED, id=1), run("rbf", 2, state=RunState.FAILED, id=2)]
    assert audit(cells, [*runs, *lost, run("polynomial", 0, state=RunState.DIVERGED, id=3)]) == {}


@settings(deadline=None, max_examples=50)
@given(st.sets(st.integers(0, 30), min_size=1, max_size=12))
def test_ranges_of_seeds_name_every_seed_once_and_no_other(seeds: set[int]) -> None:
    cells = [cell("rbf", kernel="rbf"), cell("exponential", kernel="exponential")]
    runs = [run("rbf", seed, 1.0, 1.0, id=seed) for seed in seeds]
    facts = audit(cells, [*runs, run("exponential", 99, 1.0, 1.0, id=99)])["seeds"]
    (text,) = (words for words, where in facts.items() if where == (RBF,))
    named = []
    for part in text.split(", "):
        first, _, last = part.partition("–")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(seeds)


@pytest.mark.parametrize(
    ("field", "here", "there"),
    [
        ("training.steps", {"training": {"steps": 10}}, {"training": {"steps": 20}}),
        ("training.batch_tokens", {"training": {"batch_tokens": 100}}, {"training": {"batch_tokens": 200}}),
        ("model.dropout", {"model": {"dropout": 0.1}}, {"model": {"dropout": 0.2}}),
        ("evaluation.beam", {"evaluation": {"beam": 1}}, {"evaluation": {"beam": 4}}),
    ],
)
def test_another_budget_size_or_evaluation_is_listed_unless_it_is_what_the_table_compares(
    field: str, here: dict[str, Any], there: dict[str, Any]
) -> None:
    first, other = cell("a", labels={"approach": "x"}, **here), cell("b", labels={"approach": "y"}, **there)
    runs = [*seeded("a", 1.0), *seeded("b", 1.0)]
    words = [str(next(iter(values.values()))[field.partition(".")[2]]) for values in (here, there)]
    assert audit([first, other], runs, rows=["approach"])[field] == {words[0]: (RBF,), words[1]: (EXP,)}
    assert field not in audit([first, other], runs, rows=[field])


@pytest.mark.parametrize(
    ("factor", "here", "there"),
    [
        ("norm", {"norm": "pre"}, {"norm": "post"}),
        ("symmetry", {"symmetry": "symmetric"}, {"symmetry": "asymmetric"}),
        ("kernel", {"kernel": "rbf"}, {"kernel": "linear"}),
        (
            "placement",
            {"position": "product", "placement": ["encoder-self"]},
            {"position": "product", "placement": ["decoder-self"]},
        ),
        (
            "value",
            {"position": "lookup", "value": "with-position"},
            {"position": "lookup", "value": "without-position"},
        ),
        ("filter.encoder-self", {"filter": {"encoder-self": "causal"}}, {"filter": {"encoder-self": "full"}}),
        ("select.metric", {"select": {"metric": "bleu"}}, {"select": {"metric": "loss"}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_else_an_approach_brings_with_it_is_listed(
    factor: str, here: dict[str, Any], there: dict[str, Any]
) -> None:
    cells = [cell(name, labels={"approach": name}, **values) for name, values in (("x", here), ("y", there))]
    metrics = {each.id: {"test/bleu": 1.0} for name in "xy" for each in seeded(name, 1.0, 2.0)}
    runs = [*seeded("x", 1.0, 2.0), *seeded("y", 1.0, 2.0)]
    facts = audit(cells, runs, rows=["approach"], options={"metric": "bleu"}, metrics=metrics)
    words = [values.spec.word(factor) for values in cells]
    assert facts[factor] == {words[0]: (RBF,), words[1]: (EXP,)}


def test_memory_is_listed_where_it_does_not_keep_cells_from_being_compared() -> None:
    """Test scores with the same context: only training had more."""
    cells = [
        cell(f"m{memory}", "prediction", labels={"approach": f"m{memory}"}, memory=memory, evaluation={"memory": 16})
        for memory in (8, 16)
    ]
    runs = [each for values in cells for each in seeded(values.id, 1.0, 2.0)]
    assert audit(cells, runs, rows=["approach"])["memory"] == {"8": (RBF,), "16": (EXP,)}


def foreign(cell: CellRecord, **fields: object) -> CellRecord:
    """The cell as another kdx may have it."""
    return replace(cell, spec=ResolvedSpec({**cell.spec.plain, **fields}))


def test_an_option_of_a_custom_component_is_listed_like_any_other(components: None) -> None:
    own = {
        "kernel": "mine.py:Tsallis",
        "components": {"mine.py:Tsallis": recorded("kernel", "mine.py:Tsallis", TSALLIS % "below=9")},
    }
    plain = [cell(name, labels={"approach": name}) for name in "xyz"]
    cells = [foreign(plain[0], **own, power=1.0), foreign(plain[1], **own, power=2.0), plain[2]]
    runs = [each for values in cells for each in seeded(values.id, 1.0, 2.0)]
    assert audit(cells, runs, rows=["approach"])["power"] == {"1.0": (RBF,), "2.0": (EXP,)}


def test_words_that_this_kdx_does_not_know_are_listed_of_every_cell() -> None:
    cells, runs = three()
    all_of = [foreign(each, norm="mine") for each in cells]
    assert audit(all_of, runs)[UNKNOWN] == {"norm `mine`": (RBF, EXP, POLY)}
    one_of = [foreign(cells[0], norm="mine", new=3), *cells[1:]]
    assert audit(one_of, runs)[UNKNOWN] == {"norm `mine`": (RBF,), "key `new`": (RBF,)}
    (table,) = tables(sweep(one_of, runs, tables=[{"name": "t", "rows": ["kernel"]}]))
    assert (
        "This kdx does not know norm `mine` in rbf; key `new` in rbf: shown as recorded" in caption(table, best="*")[-2]
    )


def test_what_cannot_change_a_score_is_not_told() -> None:
    cells = [cell("a", labels={"n": "x"}), cell("b", labels={"n": "y"}, training={"record_every": 7})]
    assert audit(cells, [*seeded("a", 1.0), *seeded("b", 1.0)], rows=["n"]) == {}


def test_numbers_of_parameters_are_listed_also_where_the_runs_of_a_cell_do_not_agree() -> None:
    cells, runs = three()
    metrics = {each.id: {PARAMETERS: 1234567.0 if each.cell_id == "rbf" else 1000.0} for each in runs}
    assert audit(cells, runs, metrics=metrics) == {"parameters": {"1,000": (EXP, POLY), "1,234,567": (RBF,)}}
    metrics[next(each.id for each in runs if each.cell_id == "rbf")] = {PARAMETERS: 1000.0}
    assert audit(cells, runs, metrics=metrics)["parameters"] == {
        "1,000": (EXP, POLY),
        "1,000 and 1,234,567": (RBF,),
    }


SMOOTHER, RBF_FILE, EXPONENTIAL_FILE = (
    "kdx.attention.smoother",
    "kdx.attention.kernels.rbf",
    "kdx.attention.kernels.exp",
)


def environment(**known: Any) -> Provenance:
    return origin(environment=known)


OF_RBF, OF_EXPONENTIAL = {SMOOTHER: "1" * 64, RBF_FILE: "2" * 64}, {SMOOTHER: "1" * 64, EXPONENTIAL_FILE: "3" * 64}
CHANGED_AT_40 = origin(changes="torch 2.12 → 2.13 from step 40 on")
NOT_EXACT = "torch 2.12 → 2.13 from step 40 on (not bit-exact)"


@pytest.mark.parametrize(
    ("origins", "facts"),
    [
        ([origin(), origin(data="e" * 32)], {"data": {"dddddddd": (RBF,), "eeeeeeee": (EXP,)}}),
        # Cells that use other modules are of the same code; what both use must be the same.
        ([origin(modules=OF_RBF), origin(code="e" * 32, modules=OF_EXPONENTIAL)], {}),
        (
            [origin(modules=OF_RBF), origin(code="e" * 32, modules=OF_EXPONENTIAL | {SMOOTHER: "4" * 64})],
            {f"code of {SMOOTHER}": {"11111111": (RBF,), "44444444": (EXP,)}},
        ),
        (
            [environment(torch="2.12", threads=1, numpy="2.4"), environment(torch="2.13", threads=2, numpy="2.4")],
            {"torch": {"2.12": (RBF,), "2.13": (EXP,)}, "threads": {"1": (RBF,), "2": (EXP,)}},
        ),
        (
            [environment(canary="5fa8"), environment(canary="43f7")],
            {"processor arithmetic in fp32": {"5fa8": (RBF,), "43f7": (EXP,)}},
        ),
        ([environment(canary="5fa8"), environment(canary=None)], {}),
        # The seeds of a cell may differ.
        (
            [environment(torch="2.12"), environment(torch="2.12"), environment(torch="2.13")],
            {"torch": {"2.12": (RBF,), "2.12 and 2.13": (EXP,)}},
        ),
        (
            [environment(torch="2.12"), environment(torch="2.12"), origin(environment=None)],
            {"torch": {"2.12": (RBF,), "2.12 and not recorded": (EXP,)}},
        ),
        # Changed conditions are listed even where all cells share them.
        ([origin(), CHANGED_AT_40], {CHANGED: {NOT_EXACT: (EXP,)}}),
        ([CHANGED_AT_40, CHANGED_AT_40], {CHANGED: {NOT_EXACT: (RBF, EXP)}}),
        # Of the definitions, that of the table's metric alone.
        (
            [
                origin(definitions={"test/bleu": "tok:13a", "test/loss": "nats"}),
                origin(definitions={"test/bleu": "tok:none", "test/loss": "bits"}),
            ],
            {"definition": {"tok:13a": (RBF,), "tok:none": (EXP,)}},
        ),
        # What nobody recorded is no difference.
        ([environment(torch="2.12"), Provenance(None, None, None, None)], {}),
        ([origin(definitions={"test/bleu": "x"}), origin(environment=None, definitions=None)], {}),
        # Nor is what cannot change a score.
        ([environment(host="a"), environment(host="b")], {}),
    ],
)
def test_what_runs_were_computed_from_is_listed_where_it_differs(
    origins: list[Provenance], facts: dict[str, Mapping[str, Any]]
) -> None:
    assert of_origins(*origins) == facts


def test_fast_arithmetic_is_listed_even_where_all_runs_have_it() -> None:
    fast = origin(environment={"arithmetic": "fast"})
    assert of_origins(origin(), fast) == {FAST: {"fast": (EXP,)}}
    assert of_origins(fast, fast) == {FAST: {"fast": (RBF, EXP)}}
    cells, runs = three()
    requests = [{"name": "t", "rows": ["kernel"]}]
    (table,) = tables(sweep(cells, runs, tables=requests, provenance={each.id: fast for each in runs}))
    for full in (False, True):
        assert "Arithmetic: fast in 3 cells; not bit-exact where a run is repeated or resumed." in caption(
            table, best="*", full=full
        )


def test_cells_that_are_not_compared_may_differ() -> None:
    cells = [
        cell("a", labels={"n": "x"}),
        cell("b", labels={"n": "y"}, data={"corpus": "other"}),
        cell("c", "prediction", labels={"n": "z"}),
    ]
    runs = [*seeded("a", 1.0), *seeded("b", 1.0, 2.0), *seeded("c", 1.0, 2.0, 3.0)]
    facts = audit(cells, runs, rows=["n", "data.corpus"])
    assert facts == {"data.corpus": {"synthetic": (RBF,), "other": (EXP,)}}, "nothing else, such as seeds"


TRAINED = Provenance("data", "code", {"torch": "2.12", "host": "a"}, {}, modules={"kdx.models.a": "1" * 64})
LONGER = {"name": "longer", "settings": {"length": 128}}


def evaluated(*of_seeds: tuple[Provenance, Provenance | None]) -> dict[str, dict[str, int]]:
    """Topic → value → cells, of two cells whose first is evaluated at another length than trained; (run, evaluation)
    each."""
    records = [cell(name, task="prediction", kernel=kernel) for name, kernel in (("a", "rbf"), ("b", "exponential"))]
    runs = [item for record in records for item in seeded(record.id, 4.0, 5.0)]
    known = records[0].spec.known
    assert known
    requests = EvaluationSettings.model_validate(LONGER["settings"])
    each = resolve_evaluation(known, EvaluationRequest("longer", requests))
    results, provenance = {}, {}
    for index, trained in enumerate(runs):
        values = of_seeds[index] if index < len(of_seeds) else (TRAINED, TRAINED)
        provenance[trained.id] = values[0]
        record = EvaluationRecord(each.id, each.settings, 0.0, 128, {}, None, {"loss": 1.0}, None, values[1])
        results[trained.id] = {each.id: record}
    table = {"name": "t", "rows": ["kernel"], "columns": ["evaluation.length"], "metric": "loss"}
    result = replace(sweep(records, runs, tables=[table], provenance=provenance), evaluations=results)
    (built,) = tables(replace(result, grid={**result.grid, "evaluations": [LONGER]}))
    return {
        item.topic: {value: len(at) for value, at in item.values.items()}
        for item in built.audit
        if "evaluation" in item.topic
    }


def test_evaluations_made_as_their_runs_and_as_each_other_are_not_told():
    assert evaluated() == {}
    # Other machines with the same libraries compute the same; and the trainer is no code of an evaluation.
    elsewhere = replace(TRAINED, environment={"torch": "2.12", "host": "b", "cores": 4, "kdx": "9"})
    trainer = {"kdx.models.a": "1" * 64, "kdx.training.run": "5" * 64}
    assert evaluated((replace(TRAINED, modules=trainer), elsewhere)) == {}


@pytest.mark.parametrize(
    ("since", "among"),
    [
        (
            {"environment": {"torch": "2.13", "host": "a"}},
            {"torch of evaluations": {"2.12 and 2.13": 1, "2.12": 1}},
        ),
        (
            {"modules": {"kdx.models.a": "2" * 64}},
            {"code of kdx.models.a of evaluations": {"11111111 and 22222222": 1, "11111111": 1}},
        ),
        (
            {"data": "other"},
            {"data of evaluations": {"data and other": 1, "data": 1}},
        ),
    ],
)
def test_evaluations_made_otherwise_than_each_other_are_listed(since, among):
    assert evaluated((TRAINED, replace(TRAINED, **since))) == among


def test_of_an_older_kdx_and_of_failed_evaluations_nothing_is_known():
    bare = Provenance(None, None, None, None)
    assert evaluated((bare, TRAINED), (TRAINED, None), (TRAINED, bare), (bare, bare)) == {}


def test_runs_that_are_out_of_the_table_are_listed_with_the_reason() -> None:
    cells, runs = three([1.0, 2.0], [1.0, 2.0], [1.0])
    out = {"invalidated": "the corpus was cut"}
    rbf, exp, poly = ([each for each in runs if each.cell_id == kernel] for kernel in KERNELS)
    again = rbf[0]._replace(id=7, generation=1, **out)
    given = [*rbf, again, exp[0], exp[1]._replace(**out), poly[0]._replace(**out)]
    facts = audit(cells, given)[OUT]
    assert facts == {
        "run 7 of seed 0 (the corpus was cut)": (RBF,),
        f"run {exp[1].id} of seed 1 (the corpus was cut)": (EXP,),
        f"run {poly[0].id} of seed 0 (the corpus was cut)": (POLY,),
    }
    (table,) = tables(sweep(cells, given, tables=[{"name": "t", "rows": ["kernel"]}]))
    assert any(text.startswith("Excluded from this table: run 7 of seed 0") for text in caption(table, best="*"))


def test_an_older_generation_that_would_not_stand_is_not_told() -> None:
    cells, runs = three()
    old = runs[0]._replace(id=7, generation=0, invalidated="cut")
    assert OUT not in audit(cells, [old, runs[0]._replace(generation=1), *runs[1:]])


def searched(*searches, **how):
    return {each.topic: each.values for each in trials.table(*searches, **how).audit}


def test_equal_searches_have_nothing_to_tell_not_even_that_their_winners_differ() -> None:
    assert searched(trials.search("rbf"), trials.search("exponential")) == {}


def test_a_cell_that_was_not_searched_for_is_listed_beside_those_that_were() -> None:
    search = searched(trials.search("rbf"), plain=("exponential",))
    assert dict(search["tuning"]) == {"random": ((0, 0),), "none": ((1, 0),)}
    assert trials.RATE in search, "the other could not choose its rate"


@pytest.mark.parametrize(
    ("other", "topic", "words"),
    [
        ({"seeds": (7,)}, "tuning seeds", ["1000000", "7"]),
        ({"sampler": Sampler.TPE}, "tuning", ["random", "tpe"]),
        ({"pruner": Pruner.MEDIAN}, "tuning pruner", ["none", "median"]),
        ({"space": {trials.RATE: trials.SPACE[trials.RATE]}}, "tuning space", None),
    ],
)
def test_unequal_searches_are_listed(other: dict[str, Any], topic: str, words: list[str] | None) -> None:
    search = searched(trials.search("rbf"), trials.search("exponential", **other))
    assert len(search[topic]) == 2 and (words is None or list(search[topic]) == words)


def test_unequal_numbers_of_trials_and_of_steps_are_listed() -> None:
    short = trials.search("exponential", total=2)
    short = short._replace(trials=short.trials[:2])
    search = searched(trials.search("rbf"), short)
    assert (list(search["tuning trials"]), list(search["tuning steps"])) == (["3", "2"], ["120", "80"])


def test_a_cell_that_is_scored_with_a_seed_of_its_trials_is_listed_always() -> None:
    table = trials.table(trials.search("rbf", seeds=(1,)))
    (result,) = table.audit
    assert (result.topic, dict(result.values)) == (TUNED, {"seed 1": ((0, 0),)})
    assert any("Scored with seeds that trials of its search used" in text for text in caption(table, best="*"))


def test_a_search_that_is_not_done_is_stated_below_the_table() -> None:
    result = trials.table(trials.search("rbf"), trials.search("exponential", total=9))
    assert any(
        "The search of exponential is not done, so it is not in the table: 3 of 9" in note for note in result.notes
    )
