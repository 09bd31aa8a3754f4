"""A device that is not there is refused before anything is computed on it."""

import pytest
import torch

from kdx.attention.verification.device import check_device
from kdx.errors import KdxError


def test_the_processor_is_always_there():
    check_device("cpu")


@pytest.mark.parametrize(
    ("built", "told"), [(None, "this torch is built without CUDA"), ("13.0", "torch finds no GPU")]
)
def test_a_gpu_that_is_not_there_is_refused(monkeypatch, built, told):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", built)
    with pytest.raises(KdxError, match=f"--device cuda: {told}"):
        check_device("cuda")
