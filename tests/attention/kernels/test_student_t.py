import pytest
import torch

from kdx.attention.interfaces import Settings
from kdx.attention.kernels.student_t import StudentT

Q, K = torch.tensor([[[[1.0, 2.0, 0.0, 1.0]]]]), torch.tensor([[[[3.0, 0.5, -7.0, 0.0]]]])
KERNEL = StudentT(Settings(4, 1, 4))


def test_weight_falls_with_the_squared_distance_over_the_root_of_d() -> None:
    assert KERNEL.weight(Q, K).item() == pytest.approx(1 / (1 + (4 + 2.25 + 49 + 1) / 2))
    assert KERNEL.weight(Q, Q).item() == 1


def test_a_small_distance_between_long_vectors_is_near_enough() -> None:
    query = torch.full((1, 1, 1, 4), 100.0)
    assert KERNEL.weight(query, query + 0.01).item() == pytest.approx(1, abs=0.01)
