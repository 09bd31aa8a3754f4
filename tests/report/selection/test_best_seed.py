"""The seed is chosen by its validation score alone."""

from hypothesis import given
from hypothesis import strategies as st
from sweeps import cell, run, sweep

from kdx.report.selection.best_seed import best_seed, selected_runs, standing_runs
from kdx.store.records import RunState
from kdx.vocabulary import Direction

scores = st.none() | st.floats()
a_run = st.builds(
    run,
    st.just("cell"),
    st.integers(0, 5),
    scores,
    scores,
    st.sampled_from(RunState),
    id=st.integers(0, 1000),
    generation=st.integers(0, 2),
)
directions = st.sampled_from(Direction)


@given(st.lists(a_run), directions, st.data())
def test_best_seed_ignores_test_split(runs: list, direction: Direction, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations([each.test_score for each in runs]))
    chosen = best_seed(runs, direction)
    again = best_seed(
        [first._replace(test_score=score) for first, score in zip(runs, shuffled, strict=True)], direction
    )
    anything = best_seed([each._replace(test_score=data.draw(scores)) for each in runs], direction)
    for other in (again, anything):
        assert (chosen and (chosen.id, chosen.seed, chosen.generation)) == (
            other and (other.id, other.seed, other.generation)
        )


@given(st.lists(a_run), directions)
def test_no_completed_run_has_a_better_validation_score_than_the_best(runs: list, direction: Direction) -> None:
    best = best_seed(runs, direction)
    scored = [each for each in runs if each.state is RunState.COMPLETED and each.valid_score == each.valid_score]
    scored = [each for each in scored if each.valid_score is not None]
    assert (best is None) == (not scored)
    if best:
        end = max if direction is Direction.MAX else min
        assert best.valid_score == end(each.valid_score for each in scored)
        assert best.seed == min(each.seed for each in scored if each.valid_score == best.valid_score)


def test_the_newest_final_generation_stands_for_a_seed_or_else_the_newest() -> None:
    again = run("cell", 0, 1.0, id=10, generation=0), run("cell", 0, 2.0, id=11, generation=1)
    begun = run("cell", 0, state=RunState.PENDING, id=12, generation=2)
    waiting = run("cell", 1, state=RunState.FAILED, id=13), run("cell", 1, state=RunState.PENDING, id=14, generation=1)
    assert [standing_run.id for standing_run in standing_runs([begun, *again, *waiting])] == [11, 14]


def test_of_each_cell_the_standing_run_with_the_best_validation_score_is_selected() -> None:
    cells = [cell("a"), cell("b", "prediction"), cell("c", kernel="rbf")]
    superseded = run("a", 0, 99.0, id=1)
    runs = [superseded, run("a", 0, 20.0, id=2, generation=1), run("a", 1, 30.0, id=3)]
    runs += [run("b", 0, 20.0, id=4), run("b", 1, 30.0, id=5), run("c", 0, state=RunState.DIVERGED, id=6)]
    result = selected_runs(sweep(cells, runs))
    assert {cell: each.id for cell, each in result.items()} == {"a": 3, "b": 4}


def test_a_run_that_is_out_of_tables_gives_its_place_to_an_older_one_or_stands_for_none() -> None:
    old, new = run("cell", 0, 1.0, id=1), run("cell", 0, 2.0, id=2, generation=1)._replace(invalidated="cut")
    pending = run("cell", 0, None, id=3, generation=2, state=RunState.PENDING)
    assert standing_runs([old, new]) == [old]
    assert standing_runs([old, new, pending]) == [old]
    assert standing_runs([new, pending]) == [pending]
    assert standing_runs([old._replace(invalidated="too"), new]) == [new]
    assert best_seed([new], Direction.MAX) is None and best_seed([old, new], Direction.MAX) == old
