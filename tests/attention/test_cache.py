import pytest
import torch

from kdx.attention import Cache, KernelAttention
from tests.attention.by_hand import close, draw


def attention(filter: str = "causal") -> KernelAttention:
    torch.manual_seed(0)
    positions = ("direct-sum", "product")
    return KernelAttention(8, 2, kernel="rbf", positions=positions, value="with-position", filter=filter).double()


@pytest.mark.parametrize("rows", [[2], [0, 2], [1, 1, 0, 2]], ids=["one", "fewer", "beam"])
def test_selected_rows_go_on_as_if_they_had_been_alone(rows: list[int]) -> None:
    module, x, kept = attention(), draw(3, 5, 8), torch.tensor(rows)
    cache = Cache()
    module(x[:, :3], cache=cache)
    cache.select(kept)
    close(module(x[kept, 3:], cache=cache), module(x)[kept, 3:])


def test_selected_rows_keep_their_source() -> None:
    module, x, source, kept = attention("full"), draw(3, 4, 8), draw(3, 5, 8, seed=1), torch.tensor([2, 0])
    padding = torch.tensor([[False] * 5, [False] * 5, [False, False, False, True, True]])
    whole = module(x, source, key_padding=padding)
    cache = Cache()
    module(x[:, :1], source, key_padding=padding, cache=cache)
    cache.select(kept)
    close(module(x[kept, 1:], source[kept], cache=cache), whole[kept, 1:])


def test_a_source_is_projected_once() -> None:
    module, x, source = attention("full"), draw(1, 3, 8), draw(1, 5, 8, seed=1)
    cache = Cache()
    first = module(x[:, :1], source, cache=cache)
    kept = cache.keys
    module(x[:, 1:2], torch.full_like(source, torch.nan), cache=cache)
    assert cache.keys is kept
    close(first, module(x, source)[:, :1])


def test_prompts_padded_on_the_left_go_on_from_their_own_positions() -> None:
    module, long, short = attention(), draw(1, 6, 8), draw(1, 4, 8, seed=1)
    prompts = torch.cat([long[:, :4], torch.cat([draw(1, 2, 8, seed=2), short[:, :2]], 1)])
    cache = Cache()
    module(
        prompts,
        query_positions=torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]]),
        key_padding=torch.tensor([[False] * 4, [True, True, False, False]]),
        cache=cache,
    )
    went_on = torch.cat(
        [module(torch.cat([long[:, 4 + i, None], short[:, 2 + i, None]]), cache=cache) for i in (0, 1)], 1
    )
    close(went_on[:1], module(long)[:, 4:])
    close(went_on[1:], module(short)[:, 2:])
