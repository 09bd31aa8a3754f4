"""What changes torch for everybody is found, whenever it does; what puts it back is not."""

import pytest
import torch

from kdx.attention.verification import torch_state
from kdx.attention.verification.torch_state import set_otherwise_than_a_component_would, torch_left_alone
from kdx.errors import ComponentError


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    set_otherwise_than_a_component_would()
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device("cpu")
    torch.set_grad_enabled(True)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = False
    torch.set_rng_state(state)


CHANGES = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "default device": lambda: torch.set_default_device("meta"),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "number of threads": lambda: torch.set_num_threads(1),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(False),
    "precision of products in float32": lambda: torch.set_float32_matmul_precision("medium"),
    "TF32 in cuDNN": lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
    "choice of cuDNN's algorithms by their time": lambda: setattr(torch.backends.cudnn, "benchmark", True),
}


@pytest.mark.parametrize("setting", torch_state._SETTINGS)
def test_a_setting_that_is_changed_is_named(setting):
    with (
        pytest.raises(ComponentError, match=f"it changes a setting of torch when it computes, its {setting}"),
        torch_left_alone("when it computes", may_draw=True),
    ):
        CHANGES[setting]()


def test_what_comes_of_a_setting_is_not_what_is_told():
    with (
        pytest.raises(ComponentError, match="its grad mode from True to False") as caught,
        torch_left_alone("when it computes"),
    ):
        torch.set_grad_enabled(False)
        raise RuntimeError("nothing requires a gradient")
    assert isinstance(caught.value.__context__, RuntimeError)


@pytest.mark.parametrize("may_draw", [True, False])
@pytest.mark.parametrize(
    "seed", [lambda: torch.manual_seed(0), lambda: torch.set_rng_state(torch.Generator().get_state())]
)
def test_seeding_is_found_even_where_one_may_draw(seed, may_draw):
    with (
        pytest.raises(ComponentError, match="it seeds torch's random numbers when it is made"),
        torch_left_alone("when it is made", may_draw=may_draw),
    ):
        seed()


def test_drawing_is_found_where_nothing_may_be_drawn():
    with torch_left_alone("when it is made", may_draw=True):
        torch.rand(3)
    with (
        pytest.raises(ComponentError, match="it draws from torch's random numbers when it computes"),
        torch_left_alone("when it computes"),
    ):
        torch.rand(3)


def test_what_is_put_back_is_no_change():
    with torch_left_alone("when it computes"):
        with torch.random.fork_rng(), torch.no_grad(), torch.autocast("cpu"):
            torch.manual_seed(7)
            torch.rand(3)
        torch.rand(3, generator=torch.Generator().manual_seed(1))


def test_an_error_of_the_block_stays_what_it_is():
    with pytest.raises(ZeroDivisionError), torch_left_alone("when it computes"):
        raise ZeroDivisionError
