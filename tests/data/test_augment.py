"""Augmentation as statistics: what each change draws, what it leaves alone, what it commutes with.

`test_windows.py` looks at each change once; here are the laws behind them.
"""

import math
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_near, assert_rotations, rotations, scipy_matrices, uniform
from torch import Tensor

from ginio.core import Representation
from ginio.core.window import SensorWindow
from ginio.data import augment
from ginio.data.augment import AugmentConfig, disturb, frame_error, shifted, turn
from ginio.geometry import frames, so3

BATCH, TIME, STEP_S = 4000, 6, 0.04
EVERYTHING = AugmentConfig(
    bias_acc_mps2=0.2,
    bias_gyr_radps=0.1,
    drift_gyr_radps=0.1,
    noise_acc_mps2=0.3,
    noise_gyr_radps=0.2,
    scale=0.05,
    shift_samples=2,
    tilt_deg=3.0,
)
KINDS: tuple[augment.Turn, ...] = ("none", "yaw", "quarter", "so3")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def felt(batch: int = BATCH, time: int = TIME, dtype: torch.dtype = torch.float64) -> SensorWindow:
    acc_s, gyr_s = torch.randn(2, batch, time, 3, dtype=dtype)
    R_ws = rotations(batch * time, dtype).reshape(batch, time, 3, 3)
    return SensorWindow(acc_s, gyr_s, R_ws)


def parts(window: SensorWindow) -> tuple[Tensor, Tensor, Tensor]:
    return window.acc_s, window.gyr_s, window.R_ws


def equal(first: SensorWindow, second: SensorWindow) -> list[bool]:
    return [torch.equal(a, b) for a, b in zip(parts(first), parts(second), strict=True)]


# Strength nothing, and one seed


@given(seed=st.integers(0, 2**31))
def test_no_strength_changes_nothing_and_draws_nothing(seed: int) -> None:
    window, generator = felt(3), seeded(seed)
    before = generator.get_state()
    assert equal(disturb(window, AugmentConfig(), generator, step_s=STEP_S), window) == [True] * 3
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("angle_deg", [0.0])
def test_no_frame_error_is_no_frame_error(angle_deg: float) -> None:
    window = felt(20)
    assert_near(frame_error(window, angle_deg, seeded()).R_ws, window.R_ws, 1e-14)


def test_a_shift_of_nothing_moves_nothing() -> None:
    signal = torch.randn(5, 9, 3)
    assert torch.equal(shifted((signal,), 0, seeded())[0], signal)


@pytest.mark.parametrize(
    ("strength", "touched"),
    [
        ({"bias_acc_mps2": 0.1}, (True, False, False)),
        ({"bias_gyr_radps": 0.1}, (False, True, False)),
        ({"drift_gyr_radps": 0.1}, (False, True, True)),
        ({"noise_acc_mps2": 0.1}, (True, False, False)),
        ({"noise_gyr_radps": 0.1}, (False, True, False)),
        ({"scale": 0.1}, (True, True, False)),
        ({"shift_samples": 3}, (True, True, False)),
        ({"tilt_deg": 1.0}, (False, False, True)),
    ],
)
def test_each_strength_touches_its_signals_only(
    strength: dict[str, float], touched: tuple[bool, ...]
) -> None:
    window = felt(40)
    changed = disturb(window, AugmentConfig(**strength), seeded(), step_s=STEP_S)
    assert [not same for same in equal(changed, window)] == list(touched)


def test_every_strength_is_tried_above() -> None:
    """A new strength needs a place in this file."""
    known = {f.name for f in fields(AugmentConfig)} - {"turn", "is_mirrored"}
    tried = {f.name for f in fields(AugmentConfig) if getattr(EVERYTHING, f.name)} - {"turn"}
    assert tried == known


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_decides_what_is_drawn(kind: augment.Turn) -> None:
    window = felt(8)
    target = torch.randn(8, 3, dtype=torch.float64)

    def drawn(seed: int) -> tuple[SensorWindow, Tensor]:
        generator = seeded(seed)
        changed = disturb(window, EVERYTHING, generator, step_s=STEP_S)
        changed = frame_error(changed, 5.0, generator)
        _, turned = turn(changed.represent(Representation.BODY), target, kind, generator)
        return changed, turned

    (first, target_1), (again, target_2), (other, target_3) = drawn(1), drawn(1), drawn(2)
    assert equal(first, again) == [True] * 3
    assert equal(first, other) == [False] * 3
    assert torch.equal(target_1, target_2)
    assert torch.equal(target_1, target_3) == (kind == "none")


def test_the_global_generator_is_not_touched() -> None:
    before = torch.get_rng_state()
    generator = seeded()
    changed = frame_error(
        disturb(felt_once(), EVERYTHING, generator, step_s=STEP_S), 5.0, generator
    )
    turn(changed.represent(Representation.LAST), torch.zeros(2, 3), "so3", generator)
    assert torch.equal(torch.get_rng_state(), before)


def felt_once() -> SensorWindow:
    """A window without a draw."""
    signal = torch.arange(2 * 5 * 3.0).reshape(2, 5, 3)
    return SensorWindow(signal, signal + 1, torch.eye(3).expand(2, 5, 3, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_precision_of_a_window_is_kept(dtype: torch.dtype) -> None:
    changed = frame_error(
        disturb(felt(5, dtype=dtype), EVERYTHING, seeded(), step_s=STEP_S), 5.0, seeded()
    )
    assert {x.dtype for x in parts(changed)} == {dtype}


# Sizes


@pytest.mark.parametrize(("sensor", "unit"), [("acc", "mps2"), ("gyr", "radps")])
def test_biases_are_uniform_and_of_their_own_for_each_axis(sensor: str, unit: str) -> None:
    window, bound = felt(), 0.7
    biased = disturb(
        window, AugmentConfig(**{f"bias_{sensor}_{unit}": bound}), seeded(), step_s=STEP_S
    )
    error = getattr(biased, f"{sensor}_s") - getattr(window, f"{sensor}_s")
    bias = error[:, 0]
    assert_near(error, bias.unsqueeze(1), 1e-12)
    part = (bias / (2 * bound) + 0.5).sort(0).values
    even = (torch.arange(BATCH, dtype=torch.float64) + 0.5) / BATCH
    # Kolmogorov and Smirnov's distance from the uniform distribution, at one in a thousand.
    assert float((part - even.unsqueeze(1)).abs().max()) < 1.95 / math.sqrt(BATCH)
    assert float(torch.corrcoef(bias.mT).fill_diagonal_(0).abs().max()) < 0.06


@pytest.mark.parametrize(("sensor", "unit"), [("acc", "mps2"), ("gyr", "radps")])
def test_noise_is_white_and_normal(sensor: str, unit: str) -> None:
    window, size = felt(), 0.4
    noisy = disturb(
        window, AugmentConfig(**{f"noise_{sensor}_{unit}": size}), seeded(), step_s=STEP_S
    )
    noise = (getattr(noisy, f"{sensor}_s") - getattr(window, f"{sensor}_s")) / size
    assert float(noise.mean().abs()) < 0.02
    assert float(noise.std()) == pytest.approx(1, abs=0.01)
    assert float(noise.pow(4).mean()) == pytest.approx(3, abs=0.1)
    every = noise.flatten(1)
    assert_near(every.mT @ every / BATCH, torch.eye(every.shape[1]).double(), 0.1)


def test_a_scale_is_common_to_the_axes_and_not_to_the_sensors() -> None:
    window = felt()
    scaled = disturb(window, AugmentConfig(scale=0.1), seeded(), step_s=STEP_S)
    ratios = [scaled.acc_s / window.acc_s, scaled.gyr_s / window.gyr_s]
    for ratio in ratios:
        assert_near(ratio, ratio[:, :1, :1], 1e-9)
    acc, gyr = (ratio[:, 0, 0] - 1 for ratio in ratios)
    for error in (acc, gyr):
        assert float(error.mean().abs()) < 0.01
        assert float(error.std()) == pytest.approx(0.1, rel=0.05)
    assert float(torch.corrcoef(torch.stack((acc, gyr)))[0, 1].abs()) < 0.06


def test_a_tilt_is_normal_about_each_sensor_axis_and_the_same_through_a_window() -> None:
    window = felt()
    tilted = disturb(window, AugmentConfig(tilt_deg=2.0), seeded(), step_s=STEP_S)
    R_error = window.R_ws.mT @ tilted.R_ws
    assert_near(R_error, R_error[:, :1], 1e-12)
    angles_deg = torch.rad2deg(so3.log(R_error[:, 0]))
    assert_near(angles_deg.std(0), torch.full((3,), 2.0).double(), 0.1)
    assert_near(angles_deg.mean(0), torch.zeros(3).double(), 0.15)
    assert float(torch.corrcoef(angles_deg.mT).fill_diagonal_(0).abs().max()) < 0.06


# Shifts


@given(most=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_a_shift_is_one_whole_number_for_a_window_and_both_sensors(most: int, seed: int) -> None:
    time = 12
    stamp = torch.arange(float(time)).view(1, time, 1).expand(300, time, 3)
    acc, gyr = shifted((stamp, 100 + stamp), most, seeded(seed))
    assert torch.equal(gyr - 100, acc)
    inner = acc[:, most : time - most] - stamp[:, most : time - most]
    by = inner[:, :1, :1]
    assert torch.equal(inner, by.expand_as(inner))
    assert set(by.flatten().tolist()) == set(range(-most, most + 1))
    assert torch.equal(acc, (stamp + by).clamp(0, time - 1))


def test_a_shift_moves_samples_against_the_attitude() -> None:
    time = 9
    stamp = torch.arange(float(time)).view(1, time, 1).expand(50, time, 3)
    R_ws = scipy_matrices(0.1 * stamp.reshape(-1, 3)).reshape(50, time, 3, 3)
    moved = disturb(
        SensorWindow(stamp, stamp, R_ws), AugmentConfig(shift_samples=2), seeded(), step_s=STEP_S
    )
    assert torch.equal(moved.R_ws, R_ws)
    assert not torch.equal(moved.acc_s, stamp)


# Frame errors


@pytest.mark.parametrize("angle_deg", [1.0, 5.0, 20.0, 90.0, 179.0])
def test_a_frame_error_has_its_angle_exactly_about_any_axis(angle_deg: float) -> None:
    window = felt(2000, 3)
    R_error = frame_error(window, angle_deg, seeded()).R_ws @ window.R_ws.mT
    assert_near(R_error, R_error[:, :1], 1e-12)
    phi = so3.log(R_error[:, 0])
    assert_near(torch.rad2deg(so3.length(phi)), torch.tensor(angle_deg).double(), 1e-9)
    axis = phi / so3.length(phi).unsqueeze(-1)
    assert_near(axis.mean(0), torch.zeros(3).double(), 0.06)
    assert_near(axis.mT @ axis / len(axis), torch.eye(3).double() / 3, 0.03)


# Turns


def quarter_turns() -> Tensor:
    """The rotations among the signed permutations, by exhaustion."""
    entries = torch.cartesian_prod(*[torch.tensor([-1, 0, 1])] * 9).view(-1, 3, 3)
    lines = [entries.abs().sum(dim) for dim in (1, 2)]
    signed = entries[((lines[0] == 1) & (lines[1] == 1)).all(-1)]
    return signed[torch.linalg.det(signed.double()).round() == 1]


def as_set(R: Tensor) -> set[tuple[int, ...]]:
    assert_near(R, R.round(), 1e-6)
    return {tuple(row) for row in R.round().long().flatten(1).tolist()}


def test_quarter_turns_are_the_24_rotations_of_the_cube_each_as_often() -> None:
    drawn = augment.rotations("quarter", 24_000, seeded())
    found, count = drawn.round().unique(dim=0, return_counts=True)
    assert as_set(found) == as_set(quarter_turns())
    assert len(as_set(found)) == 24
    # χ² with 23 degrees of freedom stays below 49.7 in 999 of 1000 cases.
    assert float(((count - 1000.0) ** 2 / 1000).sum()) < 49.7


def test_quarter_turns_are_a_group() -> None:
    group = augment.rotations("quarter", 2000, seeded()).round().unique(dim=0)
    products = torch.einsum("aij,bjk->abik", group, group).flatten(0, 1)
    assert as_set(products) == as_set(group) == as_set(group.mT)


def test_yaws_are_uniform() -> None:
    R = augment.rotations("yaw", BATCH, seeded()).double()
    angle = torch.atan2(R[:, 1, 0], R[:, 0, 0])
    assert_rotations(R, 1e-6)
    for k in (1, 2, 3):
        assert abs(torch.exp(1j * k * angle).mean()) < 0.05


def test_free_rotations_are_uniform() -> None:
    """In the Haar measure the angle has the density (1 - cos θ) / π."""
    R = augment.rotations("so3", BATCH, seeded()).double()
    angle = so3.geodesic_angle(R, torch.eye(3).double().expand_as(R)).sort().values
    even = (torch.arange(BATCH, dtype=torch.float64) + 0.5) / BATCH
    part = (angle - angle.sin()) / math.pi
    assert float((part - even).abs().max()) < 1.95 / math.sqrt(BATCH)
    assert_near(R.mean(0), torch.zeros(3, 3).double(), 0.05)


@pytest.mark.parametrize("frame", Representation)
@pytest.mark.parametrize("kind", KINDS)
def test_a_window_and_its_target_turn_alike(kind: augment.Turn, frame: Representation) -> None:
    """Whatever is told of both in the world, or between them, stays."""
    window = felt(50, dtype=torch.float32).represent(frame)
    target = torch.randn(50, 3)
    turned, target_a = turn(window, target, kind, seeded())
    assert turned.representation is frame
    assert_near(so3.rotate(turned.R_wf, target_a), so3.rotate(window.R_wf, target), 1e-5)
    features, features_a = window.features(), turned.features()
    along = torch.einsum("bcit,bi->bct", features, target)
    assert_near(torch.einsum("bcit,bi->bct", features_a, target_a), along, 1e-4)
    volume = torch.linalg.det(features[:, :, :, :3])
    assert_near(torch.linalg.det(features_a[:, :, :, :3]), volume, 1e-3)
    assert torch.equal(target_a, target) == (kind == "none")


def test_each_window_turns_by_a_rotation_of_its_own() -> None:
    same = torch.ones(40, 3)
    _, target_a = turn(
        felt(40, dtype=torch.float32).represent(Representation.BODY), same, "so3", seeded()
    )
    assert len(target_a.unique(dim=0)) == 40


@pytest.mark.parametrize("frame", [Representation.WORLD, Representation.GRAVITY])
def test_a_yaw_turns_about_the_vertical_of_windows_that_know_it(frame: Representation) -> None:
    """A sensor at rest feels gravity along z, before and after."""
    R_ws = scipy_matrices(uniform(60 * TIME, torch.float64)).reshape(60, TIME, 3, 3)
    up_w = torch.tensor([0.0, 0.0, frames.GRAVITY_MPS2], dtype=torch.float64)
    at_rest = SensorWindow(R_ws.mT @ up_w, torch.randn(60, TIME, 3).double(), R_ws)
    window = at_rest.represent(frame)
    turned, _ = turn(window, torch.zeros(60, 3).double(), "yaw", seeded())
    assert_near(turned.acc_f, up_w, 1e-6)
    assert_near(turned.gyr_f[..., 2], window.gyr_f[..., 2], 1e-6)
    assert float((turned.gyr_f[..., 0] - window.gyr_f[..., 0]).abs().mean()) > 0.1


def test_turned_windows_answer_as_an_equivariant_frontend_says() -> None:
    """The sum of force and rate is an equivariant answer; the largest entry is none."""
    window = felt(30).represent(Representation.LAST)

    def answer(features: Tensor) -> Tensor:
        return features.sum((1, 3))

    turned, expected = turn(window, answer(window.features()), "so3", seeded())
    assert_near(answer(turned.features()), expected, 1e-5)
    largest = window.features().flatten(-2).amax((1, 2))
    assert not torch.allclose(turned.features().flatten(-2).amax((1, 2)), largest, atol=0.1)


# Errors in the order of nature: the sensor errs before its samples are written in a frame


def test_a_tilt_reaches_world_windows_and_a_common_yaw_error_reaches_no_lfa_window() -> None:
    window = felt(30)
    tilted = disturb(window, AugmentConfig(tilt_deg=3.0), seeded(), step_s=STEP_S)
    yawed = replace(window, R_ws=so3.about_z(torch.tensor(0.7).double()) @ window.R_ws)
    last = window.represent(Representation.LAST)
    assert not torch.allclose(
        tilted.represent(Representation.WORLD).acc_f,
        window.represent(Representation.WORLD).acc_f,
        atol=1e-3,
    )
    assert_near(yawed.represent(Representation.LAST).acc_f, last.acc_f, 1e-12)
