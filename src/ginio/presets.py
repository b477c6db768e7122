"""Every named network, and every named training run."""

from collections.abc import Mapping
from types import MappingProxyType

from ginio.core.window import Representation
from ginio.data.augment import AugmentConfig
from ginio.models import AnyConfig, ResNet1dConfig, TemporalConfig
from ginio.training.config import TrainConfig

NETWORKS: Mapping[str, AnyConfig] = MappingProxyType(
    {
        # GINIO-R with diagonal and spectral covariance, normalised by scale only.
        "ginio-rd": TemporalConfig(covariance="diagonal"),
        "ginio-rs": TemporalConfig(covariance="spectral"),
        # The same as the paper has them, with its parameter counts, 571,872 and 802,661.
        "ginio-rd-paper": TemporalConfig(covariance="diagonal", norm="batch"),
        "ginio-rs-paper": TemporalConfig(
            covariance="spectral", norm="batch", determinant_correction=True
        ),
        # The baseline without symmetry.
        "resnet1d": ResNet1dConfig(),
    }
)

# Eight seconds at 25 Hz: a loop seen whole fixes the velocity.
FLIGHT_GROUPS = ((24, 2), (64, 2), (128, 2))
FLIGHT_RD = TemporalConfig(groups=FLIGHT_GROUPS, norm="layer", covariance="diagonal", dropout=0.1)
FLIGHT_RS = TemporalConfig(groups=FLIGHT_GROUPS, norm="layer", covariance="spectral", dropout=0.1)
FLIGHT_RESNET = ResNet1dConfig(
    stem_channels=32,
    groups=((32, 2), (64, 2), (96, 2), (128, 2)),
    head_narrow=64,
    head_hidden=256,
    dropout=0.3,
)
# What the real sensor may do that 46 flights do not show.
FLIGHT_ERRORS = AugmentConfig(
    bias_acc_mps2=0.15,
    bias_gyr_radps=0.01,
    noise_acc_mps2=0.1,
    noise_gyr_radps=0.02,
    scale=0.01,
    tilt_deg=1.5,
)


def _flight(
    network: AnyConfig, *, lfa: bool = True, synthetic: bool = False, **changes: float
) -> TrainConfig:
    return TrainConfig(
        network=network,
        representation=Representation.LAST if lfa else Representation.BODY,
        dataset="synthetic-quadrotor" if synthetic else "nanobench",
        decimate=4,
        weight_decay=0.05,
        augment=FLIGHT_ERRORS,
        **changes,  # pyright: ignore[reportArgumentType] - fields of TrainConfig
    )


RUNS: Mapping[str, TrainConfig] = MappingProxyType(
    {
        "ginio-rd-nanobench": _flight(FLIGHT_RD),
        "ginio-rs-nanobench": _flight(FLIGHT_RS),
        "resnet1d-nanobench": _flight(FLIGHT_RESNET),
        "resnet1d-nanobench-body": _flight(FLIGHT_RESNET, lfa=False),
        "ginio-rs-synthetic": _flight(FLIGHT_RS, synthetic=True),
        "resnet1d-synthetic": _flight(FLIGHT_RESNET, synthetic=True),
    }
)
