"""The memory of a process, of its GPU where it has one."""

import re

import pytest
import torch

from kdx.training.memory import memory


def test_without_a_gpu_it_is_what_is_resident():
    found = re.fullmatch(r"(\d+\.\d\d) GB resident", memory())
    assert found and 0.1 < float(found[1]) < 100  # torch alone takes more than the lower bound


def test_with_a_gpu_it_is_the_most_that_it_had_in_use(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3_210_000_000)
    assert memory() == "3.21 GB of GPU memory at most"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_asking_initialises_no_gpu():
    memory()
    assert not torch.cuda.is_initialized()
