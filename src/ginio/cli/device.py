"""Where commands compute."""

import torch

DEFAULT_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def check_device(device: str) -> None:
    """Refuse a device that is not there, before any data is read."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {device!r} cannot be used: {reason}") from error
