"""Every named network, and every named training run."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ginio.core.window import Representation
from ginio.data.augment import AugmentConfig, Turn
from ginio.data.sources import DatasetName
from ginio.models import (
    AirIoConfig,
    AnyConfig,
    CanonicalConfig,
    EqNioConfig,
    ImuNetConfig,
    RecurrentConfig,
    ResNet1dConfig,
    RoninConfig,
    TemporalConfig,
)
from ginio.training.config import TrainConfig

_REDUCED = RecurrentConfig(encoder=(10, 20), hidden=(20, 40), decoder=28)

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
        # GINIO-A in the paper's two sizes, 0.273M and 0.045M, with attitude, and for live use.
        "ginio-a": RecurrentConfig(),
        "ginio-a-reduced": _REDUCED,
        "ginio-a-attitude": replace(_REDUCED, channels=Representation.BODY_ATTITUDE.channels),
        "ginio-a-causal": RecurrentConfig(is_causal=True, covariance="spectral"),
        # GINIO-E: ResNet1D in a frame that turns with the window.
        "ginio-e": CanonicalConfig(),
        # The baseline without symmetry.
        "resnet1d": ResNet1dConfig(),
        # Rivals as published.
        "airio": AirIoConfig(),
        "airio-attitude": AirIoConfig(channels=Representation.BODY_ATTITUDE.channels),
        "eqnio-o2": EqNioConfig(),
        "eqnio-so2": EqNioConfig(group="SO(2)", hidden=128),
        "imunet": ImuNetConfig(),
        "ronin": RoninConfig(),
    }
)

# Twelve seconds at 25 Hz: a loop seen whole fixes the velocity.
FLIGHT_WINDOW = 300
FLIGHT_RS = TemporalConfig(
    window=FLIGHT_WINDOW,
    channels=Representation.LAST_BODY.channels,
    groups=((24, 2), (64, 2), (128, 2)),
    norm="layer",
    has_block_brackets=True,
    dropout=0.1,
)
FLIGHT_RESNET = ResNet1dConfig(
    window=FLIGHT_WINDOW,
    channels=Representation.LAST_BODY.channels,
    stem_channels=32,
    groups=((32, 2), (64, 2), (96, 2), (128, 2)),
    head_narrow=64,
    head_hidden=256,
    dropout=0.3,
)
# What the real sensor may do that 46 flights do not show.
FLIGHT_AUGMENT = AugmentConfig(
    bias_acc_mps2=0.15,
    bias_gyr_radps=0.01,
    noise_acc_mps2=0.1,
    noise_gyr_radps=0.02,
    scale=0.01,
    tilt_deg=1.5,
    is_mirrored=True,
)


def _flight(
    network: TemporalConfig | ResNet1dConfig,
    *,
    representation: Representation = Representation.LAST_BODY,
    dataset: DatasetName = "nanobench",
    turn: Turn = "none",
) -> TrainConfig:
    """One budget and one set of sensor errors for every network of flights.

    Many small steps rather than few large ones: half an hour on one CPU core is enough.
    """
    return TrainConfig(
        network=replace(network, channels=representation.channels),
        representation=representation,
        dataset=dataset,
        decimate=4,
        steps=6000,
        mse_steps=4800,
        batch=128,
        weight_decay=0.05,
        ema=0.998,
        bfloat16=True,
        augment=replace(FLIGHT_AUGMENT, turn=turn),
    )


RUNS: Mapping[str, TrainConfig] = MappingProxyType(
    {
        "ginio-rd-nanobench": _flight(replace(FLIGHT_RS, covariance="diagonal")),
        "ginio-rs-nanobench": _flight(FLIGHT_RS),
        "ginio-rs-nanobench-lfa": _flight(FLIGHT_RS, representation=Representation.LAST),
        "resnet1d-nanobench": _flight(FLIGHT_RESNET),
        "resnet1d-nanobench-so3": _flight(FLIGHT_RESNET, turn="so3"),
        "resnet1d-nanobench-lfa": _flight(FLIGHT_RESNET, representation=Representation.LAST),
        "resnet1d-nanobench-body": _flight(FLIGHT_RESNET, representation=Representation.BODY),
        "ginio-rs-synthetic": _flight(FLIGHT_RS, dataset="synthetic-quadrotor"),
        "resnet1d-synthetic": _flight(FLIGHT_RESNET, dataset="synthetic-quadrotor"),
    }
)
