"""A model that no machine of this kind has the memory for is refused before anything starts."""

import pytest
from grids import TINY

from kdx.errors import Faults
from kdx.grid.load import load_grid
from kdx.grid.plan import Plan
from kdx.sweep.capacity import least_memory, memory, refuse_what_does_not_fit


@pytest.fixture
def plan(tmp_path) -> Plan:
    grid = tmp_path / "grid.yaml"
    grid.write_text(TINY % {"steps": 10, "seeds": 1} + "axes: {model.inner: [16, 1000000]}\n")
    return load_grid(grid)


def test_what_does_not_fit_is_refused_where_the_grid_asks_for_it(plan):
    small, large = (least_memory(cell.spec) for cell in plan.cells)
    refuse_what_does_not_fit(plan, large)
    refuse_what_does_not_fit(plan, None)
    with pytest.raises(Faults) as refused:
        refuse_what_does_not_fit(plan, large - 1)
    assert str(refused.value).splitlines() == [
        f"{plan.file}:9:26: a model that does not fit: the feed-forward layers alone need 1.0 GB to be trained",
        "  allowed: at most 1.0 GB, which there are here",
        "  hint: make model.inner, model.width or the number of layers smaller",
    ]
    assert small < 100_000


def test_the_least_memory_is_less_than_what_a_model_and_its_optimiser_hold(plan):
    import torch

    from kdx.training.optimiser import optimiser_of
    from kdx.training.run import TASKS, load_corpus

    spec = plan.cells[0].spec
    module = TASKS[spec.task].of(spec, load_corpus(spec.task, spec.data))
    optimiser = optimiser_of(module, spec.training)
    for weights in module.parameters():
        weights.grad = torch.zeros_like(weights)
    optimiser.step()
    weights = sum(one.numel() for one in module.parameters())
    means = sum(one.numel() for state in optimiser.state.values() for one in state.values() if one.dim())
    assert 0 < least_memory(spec) <= 4 * (2 * weights + means)


def test_a_limit_of_the_system_counts_where_it_is_less_than_the_machine(tmp_path):
    everything = memory((), tmp_path)
    assert everything and everything > 2**20
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    limit = tmp_path / "sys/fs/cgroup/memory.max"
    for text, allowed in (("1000000\n", 1_000_000), ("max\n", everything), ("", everything)):
        limit.write_text(text)
        assert memory((), tmp_path) == allowed


def test_the_largest_gpu_decides(played):
    played(**{"nvidia-smi": 'printf "0, GPU-8f3a, 40960, 1\\n1, GPU-77, 999999, 1\\n2, GPU-9b, 81559, 1\\n"'})
    assert memory(("0", "2")) == 81559 * 2**20


def test_one_of_which_nobody_knows_may_be_the_largest(played):
    played(**{"nvidia-smi": 'printf "0, GPU-8f3a, 40960, 1\\n2, GPU-9b, [N/A], [N/A]\\n"'})
    assert memory(("0",)) == 40960 * 2**20
    assert memory(("0", "2")) is None


def test_without_the_program_of_the_driver_nobody_knows(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert memory(("0",)) is None
