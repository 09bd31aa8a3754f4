"""A run with fast arithmetic is a run like any other, but that its bits are no promise."""

import pytest
import torch
from runs import STEPS, Kept, cell, run, save_every_step

from kdx.grid.identity import cell_id

EXACT, FAST = (cell("prediction", arithmetic=word) for word in ("exact", "fast"))


def test_it_is_another_cell_and_exact_arithmetic_is_the_cell_that_there_always_was():
    assert cell_id(EXACT) == cell_id(cell("prediction")) != cell_id(FAST)


@pytest.mark.parametrize("spec", [EXACT, FAST], ids=["exact", "fast"])
def test_torch_may_choose_among_all_algorithms_in_a_fast_run_alone(spec, home, tmp_path):
    chosen = []
    run(spec, tmp_path, home, recorder=Kept(lambda step: chosen.append(torch.are_deterministic_algorithms_enabled())))
    assert chosen == [spec is EXACT] * STEPS


def test_it_is_stopped_and_resumed_and_its_conditions_name_it(home, tmp_path, monkeypatch):
    save_every_step(monkeypatch)
    stopped = run(FAST, tmp_path, home, stop_after=7)
    assert stopped.outcome is None
    resumed = run(FAST, tmp_path, home)
    for part, step in ((stopped, 0), (resumed, 7)):
        (begin,) = part.of("begin")
        assert (begin[1]["arithmetic"], begin[4], begin[5]) == ("fast", step, None)
    assert resumed.outcome.step == STEPS and min(resumed.column("train/loss")) == 8
