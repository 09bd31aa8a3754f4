"""Published values beside a table's: which meet, at what scale, and whether the order is the published one."""

from math import inf, nan, sqrt

import pytest
from sweeps import cell, metric_of, run, seeded, sweep

from kdx.report.papers.paper_file import Paper, PublishedCell, PublishedTable, load_paper
from kdx.report.papers.published_comparison import (
    Agreement,
    PublishedComparison,
    PublishedPair,
    compare_with_published,
)
from kdx.report.tables import tables
from kdx.store.records import CellRecord, RunRecord, RunState

BLEU, PERPLEXITY = metric_of("bleu"), metric_of("perplexity")
KERNELS = ("linear", "polynomial", "exponential", "rbf")


OURS = {"translation": "synthetic", "prediction": "synthetic"}


def paper(
    *cells: tuple[dict[str, str], object], metric: str = "bleu", table: str = "Table 1", corpora: dict[str, str] = OURS
) -> Paper:
    """One table of (words, value), of the corpus that ours are of."""
    published = [PublishedCell.model_validate({"where": where, "metric": metric, "value": v}) for where, v in cells]
    return Paper(name="p", tables=(PublishedTable(table=table, cells=tuple(published)),), corpora=corpora)


def of_kernels(*values: object, metric: str = "bleu") -> Paper:
    return paper(*(({"kernel": kernel}, value) for kernel, value in zip(KERNELS, values, strict=False)), metric=metric)


def compared(paper: Paper, cells: list[CellRecord], runs: list[RunRecord], **requests: object) -> PublishedComparison:
    (table,) = tables(sweep(cells, runs, tables=[{"name": "t", "rows": ["kernel"], **requests}]))
    return compare_with_published(table.layout.places, table.layout.records, paper)


def kernels(*scores: float | None, task: str = "translation") -> tuple[list[CellRecord], list[RunRecord]]:
    """A cell for each score, of one seed; None: it diverged."""
    used = KERNELS[: len(scores)]
    cells = [cell(kernel, task, kernel=kernel) for kernel in used]
    runs = [
        *(
            each
            for kernel, score in zip(used, scores, strict=True)
            if score is not None
            for each in seeded(kernel, score)
        )
    ]
    diverged = [kernel for kernel, score in zip(used, scores, strict=True) if score is None]
    return cells, [*runs, *(run(kernel, 0, state=RunState.DIVERGED, id=i) for i, kernel in enumerate(diverged))]


def order(paper: Paper, *scores: float | None, task: str = "translation") -> Agreement:
    (result,) = compared(paper, *kernels(*scores, task=task)).agreement
    return result


def test_a_cell_stands_beside_the_published_value_of_its_words() -> None:
    comparison = compared(of_kernels(10.0, 20.0), *kernels(11.5, 19.0, 30.0))
    assert comparison.pairs == (
        PublishedPair((0, 0), BLEU, 10.0, ("Table 1",), 11.5, diverged=False, same_corpus=True, places=(2, 2)),
        PublishedPair((1, 0), BLEU, 20.0, ("Table 1",), 19.0, diverged=False, same_corpus=True, places=(1, 1)),
    )
    assert [pair.gain for pair in comparison.pairs] == [1.5, -1.0]


@pytest.mark.parametrize("corpora", [{}, {"translation": "iwslt14"}])
def test_numbers_of_another_corpus_stand_beside_by_their_order_alone(corpora: dict[str, str]) -> None:
    published = paper(({"kernel": "linear"}, 33.0), ({"kernel": "polynomial"}, 34.0), corpora=corpora)
    comparison = compared(published, *kernels(91.0, 90.0))
    assert [(pair.gain, pair.places) for pair in comparison.pairs] == [(None, (2, 1)), (None, (1, 2))]


def test_a_published_cell_that_names_its_corpus_is_of_that_one() -> None:
    published = paper(({"kernel": "linear", "data.corpus": "synthetic"}, 33.0), corpora={"translation": "iwslt14"})
    assert [pair.gain for pair in compared(published, *kernels(34.0)).pairs] == [1.0]


def test_what_a_table_shows_is_what_stands_beside() -> None:
    cells = [cell("rbf", kernel="rbf")]
    runs = [run("rbf", 0, 2.0, 30.0), run("rbf", 1, 1.0, 40.0)]
    published = paper(({"kernel": "rbf"}, 33.0))
    assert [pair.ours for pair in compared(published, cells, runs).pairs] == [30.0]
    assert [pair.ours for pair in compared(published, cells, runs, cell="mean").pairs] == [35.0]


def test_of_several_that_meet_the_one_with_the_most_words_counts() -> None:
    published = paper(({"kernel": "rbf"}, 1.0), ({"kernel": "rbf", "norm": "pre"}, 2.0))
    cells = [cell("post", kernel="rbf", norm="post"), cell("pre", kernel="rbf", norm="pre")]
    comparison = compared(published, cells, [], rows=["norm"])
    assert [pair.published for pair in comparison.pairs] == [1.0, 2.0]


def test_a_number_of_the_narrowest_model_stands_beside_our_narrowest() -> None:
    sized = paper(({"kernel": "rbf"}, 1.0), ({"kernel": "rbf", "model.width": "1024"}, 2.0))
    cells = [cell(str(width), kernel="rbf", model={"width": width}) for width in (128, 192)]
    of_one_size = paper(({"kernel": "rbf"}, 1.0))
    for published, expected in ((sized, [1.0]), (of_one_size, [1.0, 1.0])):
        pairs = compared(published, cells, [], rows=["model.width"]).pairs
        assert [pair.published for pair in pairs] == expected
        assert pairs[0].at == (0, 0)


def test_a_number_in_two_tables_names_both_and_two_numbers_for_the_same_words_meet_nothing() -> None:
    def twice(value: float) -> Paper:
        first, other = of_kernels(20.0), paper(({"kernel": "linear"}, value), table="Table 2")
        return Paper(name="p", tables=(*first.tables, *other.tables))

    (pair,) = compared(twice(20.0), *kernels(19.0)).pairs
    assert pair.tables == ("Table 1", "Table 2")
    assert compared(twice(21.0), *kernels(19.0)).pairs == ()


def test_another_metric_or_split_does_not_meet() -> None:
    cells, runs = kernels(20.0)
    for metric in ("perplexity", "valid/bleu"):
        assert compared(of_kernels(20.0, metric=metric), cells, runs).pairs == ()
    (pair,) = compared(of_kernels(20.0, metric="valid/bleu"), cells, runs, metric="valid/bleu").pairs
    assert pair.metric.name == "valid/bleu"


def test_a_table_of_which_nothing_was_published_has_no_order_and_no_scale() -> None:
    comparison = compared(paper(({"kernel": "cosine"}, 1.0)), *kernels(1.0, 2.0))
    assert (comparison.pairs, comparison.agreement, comparison.scale) == ((), (), {})


def test_not_converging_is_a_value_on_both_sides_and_gains_nothing() -> None:
    comparison = compared(of_kernels("not converge", "not converge", 20.0), *kernels(None, 5.0, None))
    assert [(pair.published, pair.ours, pair.diverged) for pair in comparison.pairs] == [
        (None, None, True),
        (None, 5.0, False),
        (20.0, None, True),
    ]
    assert [pair.gain for pair in comparison.pairs] == [None, None, None]


def test_kendalls_tau_by_hand() -> None:
    # Of six pairs of cells one, 2 and 3, is the other way round: (5 − 1) / 6.
    agreement = order(of_kernels(1.0, 2.0, 3.0, 4.0), 10.0, 30.0, 20.0, 40.0)
    assert (agreement.metric, agreement.task, agreement.corpus, agreement.n) == (BLEU, "translation", "synthetic", 4)
    assert agreement.tau == pytest.approx(4 / 6)
    # Of the 24 orders, as many as 4 are as near to the published one, and 4 as near to its reverse.
    assert agreement.p == pytest.approx(8 / 24)


@pytest.mark.parametrize(("task", "metric"), [("translation", "bleu"), ("prediction", "perplexity")])
def test_what_did_not_converge_ranks_last_at_either_end(task: str, metric: str) -> None:
    better, worse = (30.0, 20.0) if task == "translation" else (20.0, 30.0)
    published = of_kernels("not converge", worse, better, metric=metric)
    assert order(published, None, worse, better, task=task).tau == pytest.approx(1.0)
    assert order(published, better, worse, None, task=task).tau == pytest.approx(-1.0)
    agreement = order(published, None, None, better, task=task)
    assert agreement.tau == pytest.approx(2 / sqrt(6))
    assert agreement.n == 3


@pytest.mark.parametrize("task", ["translation", "prediction"])
@pytest.mark.parametrize("score", [nan, inf])
def test_a_score_that_is_no_number_ranks_last(task: str, score: float) -> None:
    cells, runs = kernels(20.0, 30.0, task=task)
    runs = [run("linear", 0, 1.0, score, id=1), runs[1]]
    better, worse = (30.0, 20.0) if task == "translation" else (20.0, 30.0)
    metric = "bleu" if task == "translation" else "perplexity"
    (result,) = compared(of_kernels(worse, better, metric=metric), cells, runs).agreement
    assert (result.n, result.tau) == (2, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("published", "scores", "n"),
    [
        ((1.0,), (1.0,), 1),
        ((1.0, 2.0), (3.0, 3.0), 2),
        ((2.0, 2.0), (3.0, 4.0), 2),
        (("not converge", "not converge"), (3.0, 4.0), 2),
        ((1.0, 2.0), (None, None), 2),
    ],
)
def test_too_few_different_cells_cannot_be_ranked(
    published: tuple[object, ...], scores: tuple[float | None, ...], n: int
) -> None:
    agreement = order(of_kernels(*published), *scores)
    assert (agreement.n, agreement.tau, agreement.p) == (n, None, None)


def test_a_cell_without_a_score_is_shown_but_not_ranked() -> None:
    cells, runs = kernels(10.0, 20.0, 30.0)
    comparison = compared(of_kernels(1.0, 2.0, 3.0), cells, runs[:2])
    assert [pair.ours for pair in comparison.pairs] == [10.0, 20.0, None]
    assert comparison.agreement[0].n == 2


def test_only_cells_of_the_same_task_and_data_are_ranked_together() -> None:
    """Each corpus alone has the published order; together they would not."""
    cells = [
        cell(f"{corpus}-{kernel}", data={"corpus": corpus}, kernel=kernel)
        for corpus in ("easy", "hard")
        for kernel in ("linear", "polynomial")
    ]
    runs = [
        item for each, score in zip(cells, (40.0, 41.0, 11.0, 12.0), strict=True) for item in seeded(each.id, score)
    ]
    comparison = compared(of_kernels(1.0, 2.0), cells, runs, rows=["data.corpus", "kernel"])
    assert [(item.corpus, item.n, item.tau) for item in comparison.agreement] == [
        ("easy", 2, pytest.approx(1.0)),
        ("hard", 2, pytest.approx(1.0)),
    ]
    assert comparison.scale["translation"].startswith("easy or hard, ")


def test_a_cell_in_two_places_is_ranked_once() -> None:
    cells = [
        cell("same", labels={"approach": "x"}, kernel="linear"),
        cell("same", labels={"approach": "y"}, kernel="linear"),
        cell("other", labels={"approach": "z"}, kernel="rbf"),
    ]
    runs = [*seeded("same", 1.0), *seeded("other", 2.0)]
    comparison = compared(paper(({"kernel": "linear"}, 1.0), ({"kernel": "rbf"}, 2.0)), cells, runs, rows=["approach"])
    assert len(comparison.pairs) == 3
    assert comparison.agreement[0].n == 2


def test_the_scale_of_ours_in_words() -> None:
    cells, runs = kernels(1.0, 2.0)
    assert compared(of_kernels(1.0, 2.0), cells, runs).scale == {
        "translation": "synthetic, d 128, 2+2 layers, 1000 steps, n = 1 seed"
    }


def test_what_differs_between_cells_is_listed_of_each() -> None:
    cells = [
        cell(
            kernel,
            "prediction",
            kernel=kernel,
            data={"corpus": "c", "train_lines": lines},
            model={"width": width, "heads": 2, "decoder_layers": layers},
        )
        for kernel, lines, width, layers in (("linear", 500, 64, 2), ("rbf", 200, 128, 3))
    ]
    runs = [*seeded("linear", 1.0, 2.0), *seeded("rbf", 1.0)]
    published = paper(({"task": "prediction"}, 1.0), metric="perplexity")
    assert compared(published, cells, runs).scale == {
        "prediction": "c (first 200 or 500 training lines), d 64 or 128, 2 or 3 layers, 1000 steps, n = 1 or 2 seeds"
    }


def test_seeds_that_diverged_count_as_run_and_those_to_come_do_not() -> None:
    cells, _ = kernels(1.0)
    diverged = [run("linear", seed, state=RunState.DIVERGED) for seed in range(3)]
    assert compared(of_kernels(1.0), cells, diverged).scale["translation"].endswith("n = 3 seeds")
    waiting = [run("linear", 0, state=RunState.PENDING)]
    assert compared(of_kernels(1.0), cells, waiting).scale["translation"].endswith("n = 0 seeds")


def test_the_papers_own_numbers_agree_with_themselves() -> None:
    """Table 2's column of asymmetric kernels in translation, given as ours."""
    tsai = load_paper("tsai2019")
    words = {"position": ["direct-sum"], "value": "with-position"}
    cells = [cell(kernel, kernel=kernel, **words) for kernel in KERNELS]
    scores = {"polynomial": 32.72, "exponential": 33.98, "rbf": 34.26}
    runs = [*(each for kernel, score in scores.items() for each in seeded(kernel, score))]
    comparison = compared(tsai, cells, [*runs, run("linear", 0, state=RunState.DIVERGED)])
    assert [(pair.published, pair.ours, pair.places) for pair in comparison.pairs] == [
        (None, None, (4, 4)),
        *((score, score, (3 - index, 3 - index)) for index, score in enumerate(scores.values())),
    ]
    assert comparison.pairs[2].tables == ("Table 1", "Table 2", "Table 4")
    assert (comparison.agreement[0].n, comparison.agreement[0].tau) == (4, pytest.approx(1.0))
