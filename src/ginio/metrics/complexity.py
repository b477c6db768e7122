"""How large and how costly a network is, in the paper's convention and honestly."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


@dataclass(frozen=True, slots=True)
class Complexity:
    """Cost of one window in use (batch of one, evaluation mode)."""

    parameters: int
    paper_macs: int
    """Multiply-accumulates as the papers of the field print them ("FLOPs"): convolutions and
    matrix products of layers, and four for each element of a batch normalisation. Products of
    features, norms, pools and nonlinearities are free."""
    operations: int
    """Every arithmetic operation: two for each multiply-accumulate, one for each element that any
    other arithmetic kernel writes or reduces. Views and copies are free."""


BATCH_NORM_COST = 4
# Four gates, five nonlinearities and the cell update, for each element of the state.
LSTM_GATE_COST = 30
_FREE_KERNELS = """
    _reshape_alias _to_copy _unsafe_view alias arange as_strided cat clone copy_ detach empty
    empty_like expand eye fill_ full full_like gather index index_select lift_fresh new_empty
    new_zeros ones_like permute reshape select slice split split_with_sizes squeeze stack t
    transpose unbind unfold unsqueeze view zeros zeros_like
"""
_FREE = frozenset(_FREE_KERNELS.split())


def measure(network: nn.Module, features: Float[Tensor, "1 channel 3 time"]) -> Complexity:
    """Count what a network does to one window."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        with torch.no_grad(), _Counter() as counter:
            network(features)
    finally:
        for module, training in modes.items():
            module.training = training
    return Complexity(
        parameters=sum(p.numel() for p in network.parameters()),
        paper_macs=counter.paper_macs,
        operations=counter.operations,
    )


class _Counter(TorchDispatchMode):
    """Watches every kernel. Layers reach it as convolutions and matrix products.

    A batched product of two features (``bmm``) is the one matrix product that is no layer; the
    paper's convention does not see it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paper_macs = 0
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        name = packet.__name__
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **(kwargs or {}), out_val=out)
            self.operations += flops
            self.paper_macs += 0 if name in {"bmm", "baddbmm"} else flops // 2
        elif name in {"native_batch_norm", "_native_batch_norm_legit_no_training"}:
            self.paper_macs += BATCH_NORM_COST * args[0].numel()
            self.operations += 2 * args[0].numel()
        elif name == "mkldnn_rnn_layer":  # An LSTM layer, on a CPU one kernel.
            steps = args[0].shape[0] * args[0].shape[1]
            macs = steps * (args[1].numel() + args[2].numel())
            self.paper_macs += macs
            self.operations += 2 * macs + LSTM_GATE_COST * out[0].numel()
        elif name not in _FREE:
            self.operations += _elements(args, out)
        return out


def _elements(args: tuple[Any, ...], out: Any) -> int:
    values = (*args, *out) if isinstance(out, tuple) else (*args, out)
    return max((v.numel() for v in values if isinstance(v, Tensor)), default=0)
