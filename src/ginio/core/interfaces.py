"""What the parts of the pipeline ask of each other."""

from enum import Enum
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from ginio.core.measurement import Measurement
from ginio.core.window import Window


class Symmetry(Enum):
    """Rotations under which an output is declared to follow its input.

    ``O2`` is the stabilizer of gravity, ``{R in O(3): R g = g}`` (Eq. 30).
    """

    NONE = "none"
    O2 = "O(2)"
    """Rotations about the vertical, and reflections that keep it."""
    SO2 = "SO(2)"
    """Rotations about the vertical."""
    SO3 = "SO(3)"

    def __str__(self) -> str:
        return self.value


@runtime_checkable
class Network(Protocol):
    """What is trained and exported: tensors in, (mean, axes, log standard deviations) out."""

    def __call__(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[Float[Tensor, "batch 3"], Float[Tensor, "batch 3 3"], Float[Tensor, "batch 3"]]:
        """The measurement, its covariance still factored."""
        ...


@runtime_checkable
class RegularisedNetwork(Protocol):
    """A network whose training adds a penalty of its own to the loss."""

    def regularised(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch 3"],
        Float[Tensor, "batch 3 3"],
        Float[Tensor, "batch 3"],
        Float[Tensor, " batch"],
    ]:
        """The measurement, and a penalty for each window."""
        ...


@runtime_checkable
class SequenceNetwork(Protocol):
    """A recurrent network that tells the motion at many samples of a window."""

    @property
    def labels(self) -> tuple[int, ...]:
        """The sample of a window at which each output tells the motion."""
        ...

    def regularised_sequence(
        self, features: Float[Tensor, "batch channel 3 time"]
    ) -> tuple[
        Float[Tensor, "batch output 3"],
        Float[Tensor, "batch output 3 3"],
        Float[Tensor, "batch output 3"],
        Float[Tensor, " batch"],
    ]:
        """A measurement for each label, and a penalty for each window."""
        ...


@runtime_checkable
class NetworkConfig(Protocol):
    """A frozen description of a network, with the symmetry the laws will hold it to."""

    @property
    def window(self) -> int:
        """Samples in a window."""
        ...

    @property
    def channels(self) -> int:
        """Vector channels of the features."""
        ...

    @property
    def mean_symmetry(self) -> Symmetry:
        """What the mean is held to."""
        ...

    @property
    def covariance_symmetry(self) -> Symmetry:
        """What Σ is held to."""
        ...

    def build(self) -> nn.Module:
        """The network with fresh weights; a `Network`."""
        ...


@runtime_checkable
class Frontend(Protocol):
    """A trained network together with the representation it was trained in."""

    def measure(self, window: Window) -> Measurement:
        """Motion and covariance in the frame of the window."""
        ...
