"""Everything that decides a training run."""

from dataclasses import dataclass, field, replace
from typing import Literal

from ginio.core.measurement import Quantity
from ginio.core.window import Representation
from ginio.data.augment import AugmentConfig
from ginio.data.correction import Truth
from ginio.data.sources import DatasetName
from ginio.data.windows import AttitudeSource
from ginio.models import AnyConfig

Fitted = Literal["all", "covariance"]
_OWN_FRAMES = (Representation.BODY, Representation.BODY_ATTITUDE)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A run: the network, the windows it sees, and how it is fitted to them."""

    network: AnyConfig
    representation: Representation = Representation.LAST
    quantity: Quantity = Quantity.VELOCITY
    dataset: DatasetName = "nanobench"
    split: str = "standard"
    truth: Truth = "published"
    attitude: AttitudeSource = AttitudeSource.TRUTH
    decimate: int = 2
    """Recorded samples that are averaged into one sample of a window."""
    steps: int = 1600
    batch: int = 256
    learning_rate: float = 2e-3
    warm_up_steps: int = 100
    weight_decay: float = 0.02
    gradient_norm: float = 1.0
    mse_steps: int = 1200
    """Steps of MSE before the likelihood takes over; ``steps`` for MSE throughout."""
    fitted: Fitted = "all"
    """Everything, or Σ alone on the mean of a network that is given."""
    is_sequence: bool = False
    """Whether a recurrent network learns from all its outputs, each in the sensor frame of its own
    time, or from the one at the window's end."""
    penalty_weight: float = 1e-2
    ema: float = 0.995
    """Decay of the averaged weights, which are the ones validated and kept."""
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    seed: int = 0
    validate_every: int = 200
    device: str = "cpu"
    is_compiled: bool = False
    """Whether forward and backward pass are compiled; worth a minute's wait on a GPU."""
    is_captured: bool = False
    """Whether loss and gradients are recorded as a CUDA graph and replayed: no wait beforehand, and
    the only help for recurrent networks, whose kernels are many and small."""
    bfloat16: bool = False
    """Whether the network's passes run in bfloat16; losses and weights stay float32."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1:
            raise ValueError(f"steps and batch must be positive; found {self.steps}, {self.batch}")
        if self.network.channels != self.representation.channels:
            raise ValueError(
                f"windows in the {self.representation.value!r} representation have "
                f"{self.representation.channels} vector channels; found a network of "
                f"{self.network.channels}"
            )
        if self.is_sequence and (
            self.representation not in _OWN_FRAMES or self.quantity is not Quantity.VELOCITY
        ):
            raise ValueError(
                "sequences are learnt as velocities in the 'body' or 'body+attitude' "
                f"representation; found {self.quantity.value} in {self.representation.value!r}"
            )
        if self.is_captured and not self.device.startswith("cuda"):
            raise ValueError(f"only steps on a CUDA device are captured; found {self.device!r}")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema must be in [0, 1); found {self.ema}")

    def lasting(self, steps: int) -> "TrainConfig":
        """The same run with another number of steps, the same part of them with MSE."""
        return replace(self, steps=steps, mse_steps=round(self.mse_steps * steps / self.steps))
