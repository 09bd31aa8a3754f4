"""Where the check is run."""

import torch

from kdx.errors import KdxError


def check_device(device: str) -> None:
    """Refuse a device that this machine, or this torch, does not have.

    Raises:
        KdxError: there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        built = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds no GPU"
        raise KdxError(built, place="--device cuda", allowed="cpu here")
