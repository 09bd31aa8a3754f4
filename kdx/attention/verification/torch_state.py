"""Checks that a component leaves torch's global state as it is: a changed setting affects the whole process.

The settings are those that the numbers of other components, and the bits of a run (`kdx.training.determinism`), depend
on.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from kdx.errors import ComponentError

_SETTINGS: dict[str, Callable[[], Any]] = {
    "default dtype": torch.get_default_dtype,
    "default device": torch.get_default_device,
    "grad mode": torch.is_grad_enabled,
    "number of threads": torch.get_num_threads,
    "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
    "precision of products in float32": torch.get_float32_matmul_precision,
    "TF32 in cuDNN": lambda: torch.backends.cudnn.allow_tf32,
    "choice of cuDNN's algorithms by their time": lambda: torch.backends.cudnn.benchmark,
}
_THREADS = 3  # a number that few components would set
_SEED = 0x6B6478_7061727473  # a number with which no component would seed


def set_otherwise_than_a_component_would() -> None:
    """Set values that components would not set, so that a change shows; they include those of exact arithmetic."""
    # Without it torch refuses every deterministic product on a GPU.
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(_THREADS)


@contextmanager
def torch_left_alone(when: str, *, may_draw: bool = False) -> Iterator[None]:
    """Check that torch's settings and the state of its random numbers are the same after the block.

    torch's own generator is seeded first. A change to the value that a setting already has does not show, see
    `set_otherwise_than_a_component_would`.

    Args:
        when: what happens in the block, such as `when it is imported`.
        may_draw: whether random numbers may be drawn from torch's own generator.

    Raises:
        ComponentError: a setting was changed, the generator was seeded, or drawn from without permission.
    """
    torch.default_generator.manual_seed(_SEED)
    before, state = _settings(), torch.default_generator.get_state()

    def check() -> None:
        for name, setting in _settings().items():
            if setting != before[name]:
                problem = f"it changes a setting of torch {when}, its {name} from {before[name]} to {setting}"
                hint = "leave torch's settings alone, for they hold for all other components too, or put them back"
                raise ComponentError(problem, hint=hint)
        if torch.initial_seed() != _SEED:
            problem = f"it seeds torch's random numbers {when}, so that all runs would draw the same"
            raise ComponentError(problem, hint="draw from a torch.Generator of its own")
        if not may_draw and not torch.equal(torch.default_generator.get_state(), state):
            problem = f"it draws from torch's random numbers {when}, which changes every number that is drawn later"
            raise ComponentError(problem, hint="draw from a torch.Generator of its own, or only in training")

    try:
        yield
    except Exception:
        check()  # a changed setting may be the cause: without gradients, for example, nothing has a gradient
        raise
    check()


def _settings() -> dict[str, Any]:
    return {name: setting() for name, setting in _SETTINGS.items()}
