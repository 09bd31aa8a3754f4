"""Runs share GPUs as the user asks and as memory allows; processes that claim at the same time try different runs."""

import math
import random

import pytest
from grids import TINY
from hypothesis import given
from hypothesis import strategies as st

from kdx.errors import KdxError
from kdx.grid.load import load_grid
from kdx.sweep.gpus import AtATime
from kdx.sweep.placement import MARGIN, OVERHEAD, ClaimOrder, Gpus, Placed, gpus_for

GIB = 2**30


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Cells 0 and 1 differ in their kernel alone, cell 2 in its width."""
    folder = tmp_path_factory.mktemp("grid")
    small, large = (folder / name for name in ("small.yaml", "large.yaml"))
    small.write_text(TINY % {"steps": 10, "seeds": 1} + "axes: {kernel: [rbf, linear]}\n")
    large.write_text((TINY % {"steps": 10, "seeds": 1}).replace("width: 16", "width: 32"))
    found = [*load_grid(small).cells, *load_grid(large).cells]
    assert found[0].spec.model.width != found[2].spec.model.width
    return found


def placed(cells, *gpus, alone=False):
    return [Placed(gpu, cells[0], alone) for gpu in gpus]


def gpu_for(gpus, cell, at_work, waiting=(), *, alone=False):
    """The GPU that a run gets; None if it gets none now."""
    place = gpus.place(cell, at_work, [*waiting], alone=alone)
    return place and place.gpu


def test_as_many_as_fit_is_for_gpus_whose_memory_is_known(played):
    played(**{"nvidia-smi": "printf '0, GPU-8f3a, 81559, 80000\n1, GPU-77, 81559, 1000\n'"})
    gpus = gpus_for(AtATime(per_gpu="auto"), ("1", "0"))
    assert (gpus.on_each, gpus.free) == (None, {"1": 1000 * 2**20, "0": 80000 * 2**20})
    with pytest.raises(KdxError, match="--per-gpu auto, but nvidia-smi does not report the memory of GPU 2"):
        gpus_for(AtATime(per_gpu="auto"), ("0", "2"))
    # On a machine without any the same command is right.
    assert gpus_for(AtATime(per_gpu="auto"), ()).names == ()
    assert gpus_for(AtATime(per_gpu=3), ("0", "2")).on_each == 3


def test_a_run_gets_the_gpu_with_the_fewest_runs_and_the_first_of_several(cells):
    gpus = Gpus(("3", "1"), on_each=3)
    assert gpu_for(gpus, cells[0], []) == "3"
    assert gpu_for(gpus, cells[0], placed(cells, "3")) == "1"
    assert gpu_for(gpus, cells[0], placed(cells, "1", "3", "3")) == "1"
    assert gpu_for(gpus, cells[0], placed(cells, "0")) == "3"  # one that is no longer to be had counts for nobody
    assert gpu_for(gpus, cells[0], placed(cells, "1", "1", "1", "3", "3", "3")) is None
    assert gpu_for(Gpus(), cells[0], []) is None


def test_a_run_that_is_alone_shares_its_gpu_with_nobody(cells):
    gpus = Gpus(("0", "1"), on_each=3)
    assert gpu_for(gpus, cells[0], placed(cells, "0"), alone=True) == "1"
    assert gpu_for(gpus, cells[0], placed(cells, "0", "1"), alone=True) is None
    at_work = placed(cells, "0", alone=True) + placed(cells, "1", "1")
    assert gpu_for(gpus, cells[0], at_work) == "1"
    assert gpu_for(gpus, cells[0], at_work + placed(cells, "1")) is None


def test_a_run_that_is_to_be_alone_waits_for_the_gpu_with_the_fewest_runs_which_takes_no_more(cells):
    gpus = Gpus(("0", "1"), on_each=3)
    at_work = placed(cells, "0", "0", "1")
    waiting: list[Placed] = []
    assert gpus.place(cells[0], at_work, waiting, alone=True) is None
    assert waiting == placed(cells, "1", alone=True)
    assert gpu_for(gpus, cells[0], at_work, waiting) == "0"
    for _ in range(2):  # then the other one; a third has nowhere to wait
        assert gpus.place(cells[0], at_work, waiting, alone=True) is None
        assert [placed.gpu for placed in waiting] == ["1", "0"]


def test_the_first_run_is_alone_until_it_is_measured_and_then_as_many_share_as_fit(cells):
    gpus = Gpus(("0",), None, {"0": 12 * GIB})
    assert gpu_for(gpus, cells[0], []) == "0"
    assert gpu_for(gpus, cells[0], placed(cells, "0")) is None
    gpus.measured(cells[0], 4 * GIB)
    need = MARGIN * 4 * GIB + OVERHEAD
    assert 2 * need <= 12 * GIB < 3 * need
    assert gpu_for(gpus, cells[0], placed(cells, "0")) == "0"
    assert gpu_for(gpus, cells[0], placed(cells, "0", "0")) is None


def test_cells_of_the_same_sizes_are_expected_to_need_the_same_until_they_are_measured(cells):
    gpus = Gpus(("0",), None, {"0": 12 * GIB})
    gpus.measured(cells[0], 4 * GIB)
    assert gpu_for(gpus, cells[1], placed(cells, "0")) == "0"
    assert gpu_for(gpus, cells[2], placed(cells, "0")) is None  # of another size, which is measured alone
    assert gpu_for(gpus, cells[2], []) == "0"
    gpus.measured(cells[1], 8 * GIB)
    assert gpu_for(gpus, cells[1], placed(cells, "0")) is None
    assert gpu_for(gpus, cells[0], placed(cells, "0")) == "0"


@given(
    names=st.lists(st.sampled_from("abcd"), min_size=1, unique=True),
    on_each=st.none() | st.integers(1, 4),
    wanted=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), max_size=30),
    held=st.lists(st.integers(0, 8 * GIB), min_size=3, max_size=3),
)
def test_whatever_is_asked_no_gpu_gets_more_than_it_may(cells, names, on_each, wanted, held):
    free = dict.fromkeys(names, 10 * GIB)
    gpus = Gpus(tuple(names), on_each, free)
    at_work: list[Placed] = []
    known: set[int] = set()

    def expected(cell: int) -> float:
        like = {cell} & known or {0: {1}, 1: {0}, 2: set()}[cell] & known
        return MARGIN * max(held[one] for one in like) + OVERHEAD - 1 if like else math.inf

    for cell, alone, measured in wanted:
        gpu = gpu_for(gpus, cells[cell], at_work, alone=alone)
        if gpu is not None:
            alone = alone or on_each == 1
            beside = [one for one in at_work if one.gpu == gpu]
            assert not (alone and beside) and not any(one.alone for one in beside)
            at_work.append(Placed(gpu, cells[cell], alone))
            if on_each is not None:
                assert len(beside) < on_each
            elif beside:
                of_cell = {each.id: place for place, each in enumerate(cells)}
                assert sum(expected(of_cell[one.cell.id]) for one in [*beside, at_work[-1]]) <= 10 * GIB
        elif not alone and on_each is not None:
            assert all(
                any(one.gpu == name and one.alone for one in at_work)
                or sum(one.gpu == name for one in at_work) == on_each
                for name in names
            )
        if measured:
            gpus.measured(cells[cell], held[cell])
            known.add(cell)


@given(st.lists(st.integers(), unique=True), st.randoms(use_true_random=False))
def test_everything_comes_once_whoever_is_faster(wanted, draws):
    order = ClaimOrder(wanted)
    given_out = []
    for one in order:
        given_out.append(one)
        if draws.random() < 0.5:
            order.too_late()
    assert sorted(given_out) == sorted(wanted)


def test_alone_a_process_claims_the_first_one_first():
    assert [*ClaimOrder("abc")] == ["a", "b", "c"]


def test_of_a_thousand_that_begin_together_each_tries_a_few(monkeypatch):
    monkeypatch.setattr("kdx.sweep.placement.random", random.Random(0))
    workers, tries, rounds = 1000, 0, 0
    waiting = [ClaimOrder(range(2 * workers)) for _ in range(workers)]
    claimed: set[int] = set()
    while waiting:
        rounds += 1
        late = []
        for order in waiting:  # each tries one before anybody tries the next
            run = next(order)
            tries += 1
            if run in claimed:
                order.too_late()
                late.append(order)
            claimed.add(run)
        waiting = late
    assert len(claimed) == workers
    assert tries < 12 * workers and rounds < 40
    # One after another would be 500,500 tries in 1,000 rounds.
