"""Loss and gradients of a batch, recorded once as a CUDA graph and replayed at every step.

Small networks keep a large GPU waiting: a step of GINIO-A is some thousand kernels of a few
microseconds each, and Python takes longer to ask for them. A replay asks for all of them at once.
"""

import torch
from jaxtyping import Float
from torch import Tensor, cuda, nn

from ginio.core.interfaces import Network
from ginio.training.losses import Loss, Target

# Libraries choose their algorithms and allocate their workspaces at the first calls.
REHEARSALS = 3


class CapturedLoss:
    """One loss of one network, for batches of one shape."""

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        features: Float[Tensor, "batch channel 3 time"],
        target: Target,
    ) -> None:
        assert isinstance(network, Network)
        seed = torch.initial_seed()
        self.features, self.target = features.clone(), target.clone()
        kept = {name: buffer.clone() for name, buffer in network.named_buffers()}
        beside = cuda.Stream()
        beside.wait_stream(cuda.current_stream())
        with cuda.stream(beside):
            for _ in range(REHEARSALS):
                network.zero_grad()
                loss(network, self.features, self.target).backward()
            # Rehearsals are no steps: what they left in the statistics of batches is taken back.
            for name, buffer in network.named_buffers():
                buffer.copy_(kept[name])
            network.zero_grad()
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph, stream=beside):
            found = loss(network, self.features, self.target)
            found.backward()
        cuda.current_stream().wait_stream(beside)
        self.loss = found.detach()
        # Dropout of the first replay shall be that of a step which nobody rehearsed.
        torch.manual_seed(seed)
        self.gradients = [(p, p.grad) for p in network.parameters()]

    def __call__(
        self, features: Float[Tensor, "batch channel 3 time"], target: Target
    ) -> Float[Tensor, ""]:
        """The loss of a batch, whose gradients the parameters then have."""
        self.features.copy_(features)
        self.target.copy_(target)
        self.graph.replay()
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        return self.loss
