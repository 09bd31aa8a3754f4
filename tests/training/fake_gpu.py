"""A GPU that is not there: tensors that say `cuda:0` and compute on the CPU, and refuse what CUDA would refuse.

It finds operations on tensors of two devices, and those that torch documents to have no deterministic form on a GPU:
the usual faults of code that was only ever run on a CPU. It says nothing about bits, memory or speed on a GPU, nor
about half precision, which autocast applies to tensors that really are on one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lightning_fabric.accelerators.cuda as fabric_cuda
import pytest
import pytorch_lightning.accelerators.cuda as lightning_cuda
import torch
from lightning_fabric.utilities.device_dtype_mixin import _DeviceDtypeModuleMixin
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU = torch.device("cuda", 0)
# CUDA takes indices of a CPU, and copies between devices.
_MIX = {"aten::index", "aten::copy_", "aten::_to_copy", "aten::index_put", "aten::index_put_"}


class _OnGpu(Tensor):
    """A tensor on the GPU: to torch it has no data, and `inner` has them."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "_OnGpu":
        # On a real device autograd would look for its streams.
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device="meta",
        )
        made.inner = inner
        return made

    device = property(lambda self: GPU)
    __torch_function__ = torch._C._disabled_torch_function_impl

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.inner.detach().__reduce_ex__(protocol)

    def tolist(self) -> Any:
        return self.inner.tolist()

    def numpy(self) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func._schema.name
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    on_gpu = [tensor for tensor in tensors if isinstance(tensor, _OnGpu)]
    on_cpu = [tensor for tensor in tensors if not isinstance(tensor, _OnGpu) and tensor.dim()]
    if on_gpu and on_cpu and (name not in _MIX or (tensors[0] is on_cpu[0] and "index" in name)):
        raise RuntimeError(f"{name}: tensors on cuda:0 and on cpu")
    # Of what torch.use_deterministic_algorithms documents (2.13), the one that attention could use.
    if on_gpu and name == "aten::cumsum" and torch.are_deterministic_algorithms_enabled():
        raise RuntimeError(f"{name} has no deterministic form on cuda:0")
    device = kwargs.get("device")
    to_gpu = bool(on_gpu) if device is None else torch.device(device).type != "cpu"
    kwargs = kwargs if device is None else kwargs | {"device": torch.device("cpu")}
    inner = lambda leaf: leaf.inner if isinstance(leaf, _OnGpu) else leaf  # noqa: E731
    result = func(*tree_map(inner, args), **tree_map(inner, kwargs))
    # What an operation changes in place, it returns.
    known = {id(inner(tensor)): tensor for tensor in tensors}

    def outer(leaf: Any) -> Any:
        if id(leaf) in known or not (to_gpu and isinstance(leaf, Tensor)):
            return known.get(id(leaf), leaf)
        return _OnGpu(leaf)

    return tree_map(outer, result)


class _Operations(TorchDispatchMode):
    """Also operations without a tensor of the GPU among their arguments, such as `torch.arange(3, device="cuda")`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Functions of torch that would ask CUDA itself, for the number of the GPU or for memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.device:
            return func(*args, **kwargs)
        if func is torch.tensor and kwargs.get("device") is not None:
            device = torch.device(kwargs.pop("device"))
            return func(*args, **kwargs).to(GPU if device.type == "cuda" else device)
        return func(*map(_numbered, args), **{name: _numbered(value) for name, value in kwargs.items()})


def _numbered(argument: Any) -> Any:
    return GPU if isinstance(argument, str | torch.device) and str(argument) == "cuda" else argument


def _move(module: nn.Module, device: torch.device) -> nn.Module:
    """What `module.to(device)` does; a weight that two modules share remains one."""
    moved: dict[int, tuple[Tensor, Tensor]] = {}

    def at_device(tensor: Tensor) -> Tensor:
        if id(tensor) not in moved:
            copy = tensor.detach().to(device)
            weight = nn.Parameter(copy, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copy
            moved[id(tensor)] = weight, tensor
        return moved[id(tensor)][0]

    for inner in module.modules():
        for own in (inner._parameters, inner._buffers):
            own.update({name: at_device(tensor) for name, tensor in own.items() if tensor is not None})
        if isinstance(inner, _DeviceDtypeModuleMixin):
            inner._device = device
    return module


@contextmanager
def fake_gpu() -> Iterator[None]:
    """In the block, torch and Lightning see one GPU."""
    answers = {
        torch.cuda: {
            "_lazy_init": None,
            "is_available": True,
            "device_count": 1,
            "current_device": 0,
            "set_device": None,
            "get_device_name": "a GPU that is not there",
            "is_initialized": False,
        },
        fabric_cuda: {"num_cuda_devices": 1},
        lightning_cuda: {"num_cuda_devices": 1, "_check_cuda_matmul_precision": None, "_clear_cuda_memory": None},
    }
    with pytest.MonkeyPatch.context() as patch:
        for module, of_module in answers.items():
            for name, answer in of_module.items():
                patch.setattr(module, name, lambda *_, answer=answer: answer)
        patch.setattr(_DeviceDtypeModuleMixin, "to", _move)
        patch.setattr(_DeviceDtypeModuleMixin, "cpu", lambda module: _move(module, torch.device("cpu")))
        # Tensors without data cannot be tensors of inference mode.
        patch.setattr(torch, "inference_mode", lambda mode=True: torch.no_grad())
        with _Operations(), _Functions():
            yield
