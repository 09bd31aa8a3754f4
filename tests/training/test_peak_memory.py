import torch

from kdx.training.peak_memory import peak_memory


def test_memory_that_was_held_counts_when_it_is_given_back():
    before = peak_memory()
    held = torch.ones(2**28 // 4)
    del held
    assert before > 2**20
    if not torch.cuda.is_initialized():
        assert peak_memory() >= max(before, 2**28)
