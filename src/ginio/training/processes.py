"""Several processes that train one network, each on its share of every batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed, nn


@contextmanager
def joined(device: str) -> Iterator[str]:
    """Join the group that ``torchrun`` made, if any; gives this process's device."""
    if "WORLD_SIZE" not in os.environ:
        yield device
        return
    cuda = device.startswith("cuda")
    mine = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else device
    if cuda:
        torch.cuda.set_device(mine)
    distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        yield mine
    finally:
        distributed.destroy_process_group()


def is_first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return not distributed.is_initialized() or distributed.get_rank() == 0


def share(batch: int) -> slice:
    """This process's part of a batch that all of them draw alike."""
    if not distributed.is_initialized():
        return slice(None)
    world = distributed.get_world_size()
    if batch % world:
        raise ValueError(f"batch must be a multiple of the {world} processes; found {batch}")
    size = batch // world
    return slice(distributed.get_rank() * size, (distributed.get_rank() + 1) * size)


def average(value: Tensor) -> Tensor:
    """Mean over processes, in place."""
    if distributed.is_initialized():
        distributed.all_reduce(value)
        value /= distributed.get_world_size()
    return value


def average_gradients(network: nn.Module) -> None:
    """Replace every gradient by its mean over processes, in one message."""
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    if not distributed.is_initialized() or not gradients:
        return
    together = average(torch.cat([g.flatten() for g in gradients]))
    for gradient, mean in zip(
        gradients, together.split([g.numel() for g in gradients]), strict=True
    ):
        gradient.copy_(mean.view_as(gradient))
