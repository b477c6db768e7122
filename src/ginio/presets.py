"""Every named network, and every named training run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from ginio.core.window import Representation
from ginio.data.augment import AugmentConfig, Turn
from ginio.data.sources import DatasetName
from ginio.data.windows import AttitudeSource
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

# Each channel beside its departure from its mean, windows normalised one by one: decision 6.
_RD = TemporalConfig(covariance="diagonal", norm="layer", has_departures=True)
_A = RecurrentConfig(norm="layer", has_departures=True)
_A_REDUCED = replace(_A, encoder=(10, 20), hidden=(20, 40), decoder=27)

NETWORKS: Mapping[str, AnyConfig] = MappingProxyType(
    {
        # GINIO-R with diagonal and spectral covariance.
        "ginio-rd": _RD,
        "ginio-rs": replace(_RD, covariance="spectral"),
        # The same as the paper has them, with its parameter counts, 571,872 and 802,661.
        "ginio-rd-paper": TemporalConfig(covariance="diagonal", norm="batch"),
        "ginio-rs-paper": TemporalConfig(
            covariance="spectral", norm="batch", determinant_correction=True
        ),
        # GINIO-A in the paper's two sizes, 0.273M and 0.045M, and with attitude.
        "ginio-a": _A,
        "ginio-a-reduced": _A_REDUCED,
        "ginio-a-attitude": replace(_A_REDUCED, channels=Representation.BODY_ATTITUDE.channels),
        # The smaller one as the paper has it, as far as it says.
        "ginio-a-reduced-paper": RecurrentConfig(encoder=(10, 20), hidden=(20, 40), decoder=28),
        # For live use.
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


def _connected(run: TrainConfig) -> TrainConfig:
    """The same for a filter to work with, which has no truth to align its windows by."""
    augment = replace(run.augment, bias_gyr_radps=0.0, drift_gyr_radps=0.005)
    return replace(run, attitude=AttitudeSource.GYRO_WITHIN, augment=augment)


RUNS: Mapping[str, TrainConfig] = MappingProxyType(
    {
        "ginio-rd-nanobench": _flight(replace(FLIGHT_RS, covariance="diagonal")),
        "ginio-rs-nanobench": _flight(FLIGHT_RS),
        "ginio-rs-nanobench-lfa": _flight(FLIGHT_RS, representation=Representation.LAST),
        "resnet1d-nanobench": _flight(FLIGHT_RESNET),
        "resnet1d-nanobench-so3": _flight(FLIGHT_RESNET, turn="so3"),
        "resnet1d-nanobench-lfa": _flight(FLIGHT_RESNET, representation=Representation.LAST),
        "resnet1d-nanobench-body": _flight(FLIGHT_RESNET, representation=Representation.BODY),
        "ginio-rs-synthetic": _connected(_flight(FLIGHT_RS, dataset="synthetic-quadrotor")),
        "resnet1d-synthetic": _connected(_flight(FLIGHT_RESNET, dataset="synthetic-quadrotor")),
        "ginio-rs-nanobench-filter": _connected(_flight(FLIGHT_RS)),
        "resnet1d-nanobench-filter": _connected(_flight(FLIGHT_RESNET)),
    }
)

Protocol = Literal["rotations", "calibration", "frame errors", "remounting"]


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """One network of a study: how it is trained, and by what it is judged."""

    config: TrainConfig
    given: str | None = None
    """The run whose mean it takes, if it fits Σ alone."""
    protocols: tuple[Protocol, ...]
    is_main: bool = False
    """Whether it is a row of the main table, which is trained with every seed."""


STUDY_STEPS = 2000
STUDY_MSE_STEPS = 1600
CROSS = "-cross"
"""Ends the name of a run on the cross-trajectory split."""
ROTATIONS: tuple[Protocol, ...] = ("rotations",)
COVARIANCE: tuple[Protocol, ...] = ("rotations", "calibration")
FRAMES: tuple[Protocol, ...] = ("rotations", "frame errors")
REMOUNT: tuple[Protocol, ...] = ("rotations", "remounting")
EVERYTHING: tuple[Protocol, ...] = ("rotations", "calibration", "frame errors", "remounting")


def _study(
    network: AnyConfig,
    representation: Representation,
    protocols: tuple[Protocol, ...],
    *,
    turn: Turn = "none",
) -> StudyRun:
    """One budget, one set of sensor errors and one window, of eight seconds, for every network.

    Recurrent networks learn from all their outputs, as AirIO does.
    """
    config = TrainConfig(
        network=replace(network, channels=representation.channels)
        if isinstance(network, RecurrentConfig)
        else network,
        representation=representation,
        decimate=4,
        steps=STUDY_STEPS,
        mse_steps=STUDY_MSE_STEPS,
        batch=256,
        learning_rate=2e-3,
        weight_decay=0.05,
        ema=0.998,
        is_sequence=isinstance(network, AirIoConfig | RecurrentConfig),
        augment=replace(FLIGHT_AUGMENT, turn=turn),
    )
    return StudyRun(config=config, protocols=protocols)


def _turned(name: str, run: StudyRun, protocols: tuple[Protocol, ...]) -> dict[str, StudyRun]:
    """A run whose windows are turned at random: by any rotation, and by right angles."""
    turns: dict[str, Turn] = {"so3": "so3", "90": "quarter"}
    return {
        f"{name}-{suffix}": _study(
            run.config.network, run.config.representation, protocols, turn=turn
        )
        for suffix, turn in turns.items()
    }


def _by_mse(run: StudyRun) -> StudyRun:
    config = replace(run.config, mse_steps=run.config.steps)
    return StudyRun(config=config, protocols=COVARIANCE)


def _on_given(run: StudyRun, given: str) -> StudyRun:
    config = replace(run.config, fitted="covariance", mse_steps=0, steps=STUDY_STEPS // 2)
    return StudyRun(config=config, given=given, protocols=(*COVARIANCE, "frame errors"))


def _on_cross_split(run: StudyRun) -> StudyRun:
    config = replace(run.config, split="cross-trajectory")
    return StudyRun(config=config, protocols=ROTATIONS, is_main=True)


def _nanobench_study() -> dict[str, StudyRun]:
    body, last = Representation.BODY, Representation.LAST
    attitude, gravity = Representation.BODY_ATTITUDE, Representation.GRAVITY
    main = {
        "airio": _study(NETWORKS["airio"], body, EVERYTHING),
        "airio-attitude": _study(NETWORKS["airio-attitude"], attitude, EVERYTHING),
        "ginio-a-reduced": _study(NETWORKS["ginio-a-reduced"], body, EVERYTHING),
        "ginio-a-attitude": _study(NETWORKS["ginio-a-reduced"], attitude, EVERYTHING),
        "resnet1d": _study(NETWORKS["resnet1d"], body, EVERYTHING),
        "eqnio-o2": _study(NETWORKS["eqnio-o2"], gravity, EVERYTHING),
        "ginio-e": _study(NETWORKS["ginio-e"], gravity, EVERYTHING),
        "ginio-rd": _study(NETWORKS["ginio-rd"], body, EVERYTHING),
        "ginio-rs": _study(NETWORKS["ginio-rs"], last, EVERYTHING),
    }
    # Published for motions in the plane, these predict the vertical one here too.
    planar = {
        "imunet": _study(ImuNetConfig(outputs=3), gravity, EVERYTHING),
        "ronin": _study(RoninConfig(outputs=3), gravity, EVERYTHING),
    }
    diagonal = _study(NETWORKS["ginio-rd"], last, EVERYTHING)
    resnet_lfa = _study(NETWORKS["resnet1d"], last, FRAMES)
    resnet_gravity = _study(NETWORKS["resnet1d"], gravity, FRAMES)
    return {
        **{name: replace(run, is_main=True) for name, run in main.items()},
        **planar,
        **_turned("airio", main["airio"], REMOUNT),
        **_turned("airio-attitude", main["airio-attitude"], ROTATIONS),
        **_turned("resnet1d", main["resnet1d"], REMOUNT),
        **_turned("eqnio-o2", main["eqnio-o2"], (*FRAMES, "remounting")),
        **_turned("imunet", planar["imunet"], ROTATIONS),
        **_turned("ronin", planar["ronin"], ROTATIONS),
        # The law makes it indifferent to being turned; what changes are the random numbers.
        **_turned("ginio-rd", main["ginio-rd"], REMOUNT),
        # What departures from the mean are worth.
        "ginio-rd-paper": _study(NETWORKS["ginio-rd-paper"], body, ROTATIONS),
        "ginio-a-reduced-paper": _study(NETWORKS["ginio-a-reduced-paper"], body, ROTATIONS),
        "ginio-a": _study(NETWORKS["ginio-a"], body, ROTATIONS),
        "ginio-a-whole-attitude": _study(NETWORKS["ginio-a"], attitude, ROTATIONS),
        "ginio-a-causal": _study(NETWORKS["ginio-a-causal"], body, ROTATIONS),
        "ginio-rd-lfa": diagonal,
        "ginio-rd-lfa-mse": _by_mse(diagonal),
        "ginio-rs-mse": _by_mse(main["ginio-rs"]),
        "given-diagonal": _on_given(diagonal, "ginio-rs-mse"),
        "given-spectral": _on_given(main["ginio-rs"], "ginio-rs-mse"),
        "resnet1d-lfa": resnet_lfa,
        "resnet1d-lfa-so3": _turned("", resnet_lfa, FRAMES)["-so3"],
        "resnet1d-gravity": resnet_gravity,
        "resnet1d-gravity-so3": _turned("", resnet_gravity, FRAMES)["-so3"],
        "ginio-rs-gravity": _study(NETWORKS["ginio-rs"], gravity, FRAMES),
        **{name + CROSS: _on_cross_split(run) for name, run in main.items()},
    }


NANOBENCH_STUDY: Mapping[str, StudyRun] = MappingProxyType(_nanobench_study())
