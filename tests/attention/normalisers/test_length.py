import torch

from kdx.attention.interfaces import Settings
from kdx.attention.normalisers.length import Length

SETTINGS = Settings(4, 1, 4)


def test_total_is_the_number_of_keys_seen() -> None:
    weight, visible = torch.zeros(2, 3), torch.tensor([[True, False, True], [False, False, False]])
    assert Length(SETTINGS).total(weight, visible).tolist() == [[2.0], [1.0]]
    assert Length(SETTINGS).total(weight, torch.tensor([[True], [True]])).tolist() == [[3.0], [3.0]]
    assert Length(SETTINGS).total(weight, None).tolist() == [[3.0]]
