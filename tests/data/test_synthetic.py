import gzip
import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from strategies import assert_near, assert_rotations
from torch import Tensor

from ginio.core.recording import ImuSequence, Recording, Trajectory
from ginio.data.export import write_nanobench
from ginio.data.quadrotor import Plan
from ginio.data.readers import nanobench
from ginio.data.sensor_errors import SensorErrors, draw_link
from ginio.data.synthetic import (
    QuadrotorConfig,
    Shape,
    Speed,
    exact_samples,
    fly,
    plan_flight,
)
from ginio.geometry import frames, so3

G = 9.80665
STILL_S = 2.0
EVERY_KIND = len(Shape) * len(Speed)
PERFECT = QuadrotorConfig(errors=SensorErrors.none())
BRIEF = replace(PERFECT, duration_s=15.0)
PUBLISHED = (
    "t,px,py,pz,qx,qy,qz,qw,vx,vy,vz,imu_acc_x,imu_acc_y,imu_acc_z,imu_gyro_x,imu_gyro_y,imu_gyro_z,"
    "att_stateEstimate_qx,att_stateEstimate_qy,att_stateEstimate_qz,att_stateEstimate_qw"
)


@pytest.fixture(scope="module")
def perfect() -> list[Recording]:
    """One flight of every shape and speed, sampled finely and without errors."""
    return fly(replace(PERFECT, rate_hz=400.0), EVERY_KIND, seed=3)


@pytest.fixture(scope="module")
def fleet() -> list[Recording]:
    return fly(QuadrotorConfig(), 4 * EVERY_KIND, seed=4)


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    rng = np.random.default_rng(0)
    return [plan_flight(PERFECT, shape, speed, rng) for shape in Shape for speed in Speed]


def only(**sizes: object) -> QuadrotorConfig:
    """Flights that have the named errors and no others."""
    return replace(BRIEF, errors=replace(SensorErrors.none(), **sizes))


def stacked(flights: list[Recording]) -> tuple[Tensor, ...]:
    """Specific force, angular rate, attitude, velocity and position in float64."""
    columns = [(r.imu.acc_s, r.imu.gyr_s, r.truth.R_ws, r.truth.v_w, r.truth.p_w) for r in flights]
    return tuple(torch.stack(column).double() for column in zip(*columns, strict=True))


def excess(config: QuadrotorConfig, count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """By how much samples differ from perfect ones: specific force and angular rate."""
    acc, gyr, *_ = stacked(fly(config, count, seed=seed))
    acc_0, gyr_0, *_ = stacked(fly(replace(config, errors=SensorErrors.none()), count, seed=seed))
    return acc - acc_0, gyr - gyr_0


def strapdown(
    acc_s: Tensor, gyr_s: Tensor, truth: tuple[Tensor, Tensor, Tensor], dt: float, gravity: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Largest error of attitude, velocity and position of samples integrated from the start.

    Steps of two samples: Magnus' expansion of fourth order for attitude, Simpson's rule for the
    rest.
    """
    R_ws, v_w, p_w = truth
    n, h = (acc_s.shape[1] - 1) // 2 * 2, 2 * dt
    (f0, f1, f2), (w0, w1, w2) = (
        (x[:, 0:n:2], x[:, 1 : n + 1 : 2], x[:, 2 : n + 2 : 2]) for x in (acc_s, gyr_s)
    )
    whole = so3.exp(h / 6 * (w0 + 4 * w1 + w2) + h * h / 12 * torch.linalg.cross(w0, w2))
    half = so3.exp(h / 24 * (5 * w0 + 8 * w1 - w2))
    attitudes = [R_ws[:, 0]]
    for step in whole.unbind(1):
        attitudes.append(attitudes[-1] @ step)
    R = torch.stack(attitudes, dim=1)
    down = torch.tensor([0.0, 0.0, -gravity], dtype=torch.float64)
    a0 = so3.rotate(R[:, :-1], f0) + down
    a1 = so3.rotate(R[:, :-1] @ half, f1) + down
    a2 = so3.rotate(R[:, 1:], f2) + down
    v = v_w[:, :1] + h / 6 * (a0 + 4 * a1 + a2).cumsum(1)
    before = torch.cat((v_w[:, :1], v[:, :-1]), dim=1)
    p = p_w[:, :1] + (h * before + h * h / 6 * (a0 + 2 * a1)).cumsum(1)
    angle = so3.geodesic_angle(R[:, 1:], R_ws[:, 2 : n + 2 : 2])
    return (
        angle.max(),
        (v - v_w[:, 2 : n + 2 : 2]).norm(dim=-1).max(),
        (p - p_w[:, 2 : n + 2 : 2]).norm(dim=-1).max(),
    )


def test_integrated_samples_return_to_the_truth(perfect: list[Recording]) -> None:
    acc, gyr, *truth = stacked(perfect)
    angle, speed, distance = strapdown(acc, gyr, tuple(truth), 1 / 400, G)
    assert angle < 1e-6
    assert speed < 1e-4
    assert distance < 1e-3


@pytest.mark.parametrize("fault", ["gravity", "gyroscope", "time", "frame", "scale"])
def test_integration_notices_faults(perfect: list[Recording], fault: str) -> None:
    acc, gyr, *truth = stacked(perfect[:3])
    acc, gyr, gravity = {
        "gravity": (acc, gyr, -G),
        "gyroscope": (acc, -gyr, G),
        "time": (acc.roll(1, dims=1), gyr, G),
        "frame": (so3.rotate(truth[0], acc), gyr, G),
        "scale": (1.0001 * acc, gyr, G),
    }[fault]
    _, _, distance = strapdown(acc, gyr, tuple(truth), 1 / 400, gravity)
    assert distance > 5e-3


def test_truth_agrees_with_finite_differences(plans: list[Plan]) -> None:
    t, h = torch.linspace(0, 30, 2001, dtype=torch.float64), 1e-4
    for plan in plans:
        before, now, after = (plan.at(t + s) for s in (-h, 0, h))
        assert_near((after.p_w - before.p_w) / (2 * h), now.v_w, 1e-5)
        assert_near((after.v_w - before.v_w) / (2 * h), now.acc_w, 1e-4)
        assert_near(so3.local(before.R_wb, after.R_wb) / (2 * h), now.omega_b, 1e-4)
        assert_rotations(now.R_wb, 1e-12)


def test_specific_force_stands_against_gravity(plans: list[Plan]) -> None:
    """A formula written out again, apart from `inertial_measurements`."""
    t = torch.linspace(0, 30, 301, dtype=torch.float64)
    for plan in plans:
        motion = plan.at(t)
        up = torch.tensor([0.0, 0.0, G], dtype=torch.float64)
        R_bw = torch.from_numpy(Rotation.from_matrix(motion.R_wb.numpy()).inv().as_matrix())
        expected = torch.einsum("tij,tj->ti", R_bw, motion.acc_w + up)
        assert_near(exact_samples(motion)[:, :3], expected, 1e-12)


def test_motion_has_no_jumps(plans: list[Plan]) -> None:
    for plan in plans:
        time = plan.time
        joints = torch.tensor(
            [
                *(time.lift, time.lift + time.climb, time.begin, time.begin + time.blend),
                *(time.end, time.end + time.blend, time.sink, time.sink + time.descent),
            ],
            dtype=torch.float64,
        )
        joints = joints[torch.isfinite(joints)]
        before, after = plan.at(joints - 1e-7), plan.at(joints + 1e-7)
        for name in ("R_wb", "p_w", "v_w", "acc_w", "omega_b"):
            assert_near(getattr(before, name), getattr(after, name), 1e-4)


def test_flights_begin_at_rest(perfect: list[Recording]) -> None:
    acc, gyr, R, v, p = stacked([*perfect])
    still = slice(0, int(STILL_S * 400))
    assert_near(acc[:, still], torch.tensor([0.0, 0.0, G], dtype=torch.float64), 1e-6)
    for signal in (gyr, v, p - p[:, :1], R - R[:, :1]):
        assert_near(signal[:, still], torch.zeros((), dtype=torch.float64), 1e-12)


def test_most_flights_land_and_rest_where_they_landed(perfect: list[Recording]) -> None:
    acc, _, _, v, p = stacked(perfect)
    landed = p[:, -1, 2] < 0.051
    assert 0.7 < landed.double().mean() < 1
    still = slice(-int(STILL_S * 400), None)
    assert_near(v[landed, still], torch.zeros((), dtype=torch.float64), 1e-12)
    assert_near(acc[landed, still, 2], torch.tensor(G, dtype=torch.float64), 1e-6)
    assert (p[~landed, -1, 2] > 0.3).all()


def test_without_drag_the_force_is_thrust() -> None:
    for flight in fly(replace(BRIEF, drag=(0.0, 0.0, 0.0)), 9, seed=1):
        assert flight.imu.acc_s[:, :2].abs().max() < 1e-5
        assert flight.imu.acc_s[:, 2].min() > 3


def test_drag_is_against_the_velocity_along_the_body() -> None:
    for flight in fly(replace(BRIEF, drag=(0.4, 0.2, 0.1)), 9, seed=1):
        v_s = so3.rotate(flight.truth.R_ws.mT, flight.truth.v_w)
        for axis, drag in ((0, 0.4), (1, 0.2)):
            seen = -(flight.imu.acc_s[:, axis] * v_s[:, axis]).sum() / v_s[:, axis].square().sum()
            assert abs(seen / drag - 1) < 0.11
            assert (flight.imu.acc_s[:, axis] + seen * v_s[:, axis]).abs().max() < 1e-5


def test_flights_stay_within_a_room_and_what_rotors_can_do(fleet: list[Recording]) -> None:
    for flight in fleet:
        truth, imu = flight.truth, flight.imu
        for signal in (truth.p_w, truth.v_w, imu.acc_s, imu.gyr_s, flight.onboard_R_ws):
            assert torch.isfinite(signal).all()
        assert_rotations(truth.R_ws, 1e-5)
        across = (truth.p_w[:, :2] - truth.p_w[0, :2]).norm(dim=-1).max()
        assert 0.1 < across < 3.3
        assert truth.p_w[:, 2].min() > 0.04
        assert 0.4 < truth.p_w[:, 2].max() < 2.15
        assert truth.R_ws[:, 2, 2].min() > math.cos(math.radians(60))
        assert imu.gyr_s.norm(dim=-1).max() < 20
        assert imu.acc_s[:, 2].min() > 3


def test_names_tell_shape_and_speed(fleet: list[Recording]) -> None:
    assert fleet[0].name == "circle_slow_0000"
    kinds = {tuple(r.name.split("_")[:2]) for r in fleet[:EVERY_KIND]}
    assert kinds == {(shape.value, speed.value) for shape in Shape for speed in Speed}


@pytest.mark.parametrize(("speed", "low", "high"), [("slow", 0.2, 0.7), ("medium", 0.5, 1.4)])
def test_speeds_are_kept(fleet: list[Recording], speed: str, low: float, high: float) -> None:
    for flight in fleet:
        if f"_{speed}_" in flight.name and "waypoints" not in flight.name:
            in_flow = flight.truth.v_w[1000:2000].norm(dim=-1)
            assert low < in_flow.mean() < high


def test_fast_flights_are_faster(fleet: list[Recording]) -> None:
    fastest = [r.truth.v_w.norm(dim=-1).max() for r in fleet if "_fast_" in r.name]
    assert 1.5 < torch.stack(fastest).median() < 3.5


def test_paths_and_noses_point_everywhere(fleet: list[Recording]) -> None:
    travelling = torch.stack([r.truth.v_w[1500] for r in fleet])
    noses = torch.stack([r.truth.R_ws[0, :, 0] for r in fleet])
    for arrows in (travelling, noses):
        octant = (torch.atan2(arrows[:, 1], arrows[:, 0]) / (math.pi / 4)).floor().long() % 8
        assert octant.bincount(minlength=8).min() >= 0.04 * len(fleet)


def test_some_noses_follow_the_path_and_some_do_not() -> None:
    ahead = []
    for flight in fly(replace(BRIEF, shapes=(Shape.CIRCLE,), speeds=(Speed.MEDIUM,)), 40, seed=2):
        flat = flight.truth.v_w[600:800, :2]
        nose = frames.yaw_rotation(flight.truth.R_ws[600:800])[:, :2, 0]
        cosine = (nose * flat).sum(-1) / flat.norm(dim=-1)
        ahead.append(cosine.median())
    share = (torch.stack(ahead) > 0.98).double().mean()
    assert 0.15 < share < 0.6


def test_flights_repeat_and_depend_on_their_number_only() -> None:
    config = replace(QuadrotorConfig(), duration_s=15.0)
    first, again, more = fly(config, 3, seed=5), fly(config, 3, seed=5), fly(config, 5, seed=5)
    for a, b, c in zip(first, again, more[:3], strict=True):
        assert a.name == b.name == c.name
        for x, y, z in zip(everything(a), everything(b), everything(c), strict=True):
            assert torch.equal(x, y)
            assert torch.equal(x, z)


def everything(flight: Recording) -> tuple[Tensor, ...]:
    assert flight.onboard_R_ws is not None
    parts = (getattr(part, f.name) for part in (flight.imu, flight.truth) for f in fields(part))
    return (*parts, flight.onboard_R_ws)


def test_flights_differ() -> None:
    config = replace(BRIEF, shapes=(Shape.STAR,), speeds=(Speed.SLOW,))
    paths = [r.truth.p_w for seed in (1, 2) for r in fly(config, 4, seed=seed)]
    for i, path in enumerate(paths):
        for other in paths[:i]:
            assert (path - other).norm(dim=-1).max() > 0.05


def test_motion_depends_on_neither_rate_nor_errors(perfect: list[Recording]) -> None:
    for fine, coarse in zip(perfect[:9], fly(QuadrotorConfig(), 9, seed=3), strict=True):
        assert_near(coarse.truth.t, fine.truth.t[::4], 1e-12)
        assert_near(coarse.truth.p_w, fine.truth.p_w[::4], 1e-6)
        assert_near(coarse.truth.v_w, fine.truth.v_w[::4], 1e-6)


def test_a_perfect_sensor_reads_the_motion() -> None:
    flight = fly(PERFECT, 1, seed=8)[0]
    motion_seed = np.random.SeedSequence((8, 0)).spawn(1)[0]
    plan = plan_flight(PERFECT, Shape.CIRCLE, Speed.SLOW, np.random.default_rng(motion_seed))
    motion = plan.at(flight.imu.t)
    read = torch.cat((flight.imu.acc_s, flight.imu.gyr_s), dim=-1)
    assert torch.equal(read, exact_samples(motion).float())
    assert torch.equal(flight.truth.R_ws, motion.R_wb.float())
    assert torch.equal(flight.truth.p_w, motion.p_w.float())
    assert_near(flight.onboard_R_ws, flight.truth.R_ws, 1e-6)


@pytest.mark.parametrize("kind", ["acc", "gyr"])
@pytest.mark.parametrize("rate_hz", [50.0, 200.0])
def test_white_noise_has_its_density(kind: str, rate_hz: float) -> None:
    config = replace(only(**{f"{kind}_noise": 0.01}), rate_hz=rate_hz)
    acc, gyr = excess(config, 4)
    noise, other = (acc, gyr) if kind == "acc" else (gyr, acc)
    assert abs(noise.std() / (0.01 * math.sqrt(rate_hz)) - 1) < 0.03
    assert abs(noise.mean()) < 5 * noise.std() / math.sqrt(noise.numel())
    assert (noise[:, 1:] * noise[:, :-1]).mean().abs() < 0.03 * noise.var()
    assert other.abs().max() == 0


@pytest.mark.parametrize("kind", ["acc", "gyr"])
def test_bias_is_constant_and_has_its_spread(kind: str) -> None:
    acc, gyr = excess(only(**{f"{kind}_bias": 0.1}), 60)
    bias, other = (acc, gyr) if kind == "acc" else (gyr, acc)
    assert_near(bias, bias[:, :1], 2e-6)
    assert abs(bias[:, 0].std() / 0.1 - 1) < 0.2
    assert other.abs().max() == 0


@pytest.mark.parametrize("kind", ["acc", "gyr"])
def test_bias_walks_with_the_root_of_time(kind: str) -> None:
    acc, gyr = excess(only(**{f"{kind}_walk": 0.01}), 60)
    walk = acc if kind == "acc" else gyr
    for seconds in (1, 4, 10):
        step = walk[:, 1 + 100 * seconds] - walk[:, 1]
        assert abs(step.std() / (0.01 * math.sqrt(seconds)) - 1) < 0.25


@pytest.mark.parametrize("kind", ["acc", "gyr"])
def test_vibration_rises_with_the_thrust(kind: str) -> None:
    config = only(**{f"{kind}_vibration": 0.1})
    acc, gyr = excess(config, 27)
    noise = acc if kind == "acc" else gyr
    force = torch.stack([r.imu.acc_s for r in fly(BRIEF, 27, seed=0)])[..., 2].double()
    assert noise[:, :100].abs().max() == 0
    flown = slice(600, 900)
    for low, high in ((8.0, 9.5), (9.5, 10.5), (10.5, 14.0)):
        band = (force[:, flown] > low) & (force[:, flown] < high)
        expected = 0.1 * force[:, flown][band].mean() / G
        assert abs(noise[:, flown][band].std() / expected - 1) < 0.1


def test_scale_and_misalignment_mix_the_axes() -> None:
    for name, on_diagonal in (("scale", True), ("misalignment", False)):
        config = replace(only(**{name: 0.02}), duration_s=15.0)
        noisy, clean = fly(config, 40, seed=1), fly(BRIEF, 40, seed=1)
        found = []
        for a, b in zip(noisy, clean, strict=True):
            for x, y in ((a.imu.acc_s, b.imu.acc_s), (a.imu.gyr_s, b.imu.gyr_s)):
                mixing = torch.linalg.lstsq(y.double(), x.double()).solution.mT
                found.append(mixing - torch.eye(3, dtype=torch.float64))
        mixing = torch.stack(found)
        diagonal = mixing.diagonal(dim1=-2, dim2=-1)
        aside = mixing[:, ~torch.eye(3, dtype=torch.bool)]
        wanted, other = (diagonal, aside) if on_diagonal else (aside, diagonal)
        assert abs(wanted.std() / 0.02 - 1) < 0.2
        assert other.abs().max() < 1e-4


@pytest.mark.parametrize("arriving", [0.6, 0.74, 0.9, 1.0])
def test_as_many_packets_arrive_as_should(arriving: float) -> None:
    errors = replace(SensorErrors.none(), arriving=(arriving, arriving))
    rng = np.random.default_rng(0)
    links = [draw_link(errors, 3000, 100.0, rng) for _ in range(20)]
    arrived = torch.stack([link.arrived for link in links])
    assert abs(arrived.double().mean() - arriving) < 0.01
    longest = max(float(link.t[link.arrived].diff().max()) for link in links)
    assert longest <= 0.1 + 1e-9
    assert longest > 0.05 or arriving == 1


def test_lost_packets_become_straight_lines() -> None:
    config = only(arriving=(0.8, 0.8))
    for lossy, clean in zip(fly(config, 3, seed=1), fly(BRIEF, 3, seed=1), strict=True):
        moving = slice(500, 1000)
        samples, whole = (torch.cat((r.imu.acc_s, r.imu.gyr_s), dim=-1) for r in (lossy, clean))
        kept = (samples == whole).all(-1)
        bent = samples[moving].diff(n=2, dim=0).abs().amax(-1)
        lost = ~kept[moving][1:-1]
        assert 0.1 < lost.double().mean() < 0.3
        assert bent[lost].max() < 1e-5
        assert bent[~lost].median() > 1e-3


def test_packets_between_the_ticks_change_little_of_a_smooth_signal() -> None:
    acc, gyr = excess(only(is_unsynchronised=True), 3)
    assert 0 < acc.abs().max() < 0.1
    assert 0 < gyr.abs().max() < 0.2
    assert gyr.square().mean().sqrt() < 0.01


def test_the_imu_is_late_by_the_lag() -> None:
    config = replace(only(lag=(0.02, 0.02)), rate_hz=100.0)
    late, sharp = fly(config, 3, seed=1), fly(BRIEF, 3, seed=1)
    for a, b in zip(late, sharp, strict=True):
        assert_near(a.imu.gyr_s[2:], b.imu.gyr_s[:-2], 1e-6)
        assert_near(a.imu.acc_s[2:], b.imu.acc_s[:-2], 1e-5)
        assert torch.equal(a.truth.p_w, b.truth.p_w)
        behind = so3.geodesic_angle(a.onboard_R_ws[2:], b.onboard_R_ws[:-2])
        assert behind.max() < 0.02
        assert behind.max() < so3.geodesic_angle(a.onboard_R_ws, b.onboard_R_ws).max() / 2


def test_the_truth_is_tilted_about_a_level_axis() -> None:
    low, high = SensorErrors().tilt
    config = only(tilt=(low, high))
    angles = []
    for tilted, straight in zip(fly(config, 40, seed=1), fly(BRIEF, 40, seed=1), strict=True):
        tilt = so3.local(straight.truth.R_ws.double(), tilted.truth.R_ws.double())
        assert_near(tilt, tilt[:1], 1e-5)
        assert tilt[:, 2].abs().max() < 1e-5
        angles.append(tilt[0].norm())
        assert torch.equal(tilted.imu.acc_s, straight.imu.acc_s)
    angle = torch.stack(angles)
    assert low - 1e-6 < angle.min() < low + math.radians(0.5)
    assert high - math.radians(0.5) < angle.max() < high + 1e-6


def test_the_onboard_attitude_sways_and_drifts() -> None:
    low, high = SensorErrors().onboard_tilt
    tilts, drifts = [], []
    config = replace(only(onboard_tilt=(low, high), onboard_drift=1e-3), duration_s=30.0)
    for flight in fly(config, 120, seed=1):
        error_w = so3.log(flight.onboard_R_ws.double() @ flight.truth.R_ws.double().mT)
        tilts.append(error_w[:, :2].square().sum(-1).mean().sqrt())
        drifts.append(error_w[-1, 2] / flight.imu.t[-1])
        assert abs(error_w[0, 2]) < 1e-5
        assert error_w.diff(dim=0).norm(dim=-1).max() < math.radians(0.2)
    tilt = torch.stack(tilts)
    assert low / 2 < tilt.min() < tilt.max() < 1.5 * high
    assert low < tilt.mean() < high
    assert abs(torch.stack(drifts).std() / 1e-3 - 1) < 0.3


def test_turning_one_error_off_leaves_the_others_alone() -> None:
    default = replace(QuadrotorConfig(), duration_s=15.0)
    quiet = replace(default, errors=replace(default.errors, onboard_drift=0.0, tilt=(0.0, 0.0)))
    for a, b in zip(fly(default, 3, seed=1), fly(quiet, 3, seed=1), strict=True):
        assert torch.equal(a.imu.acc_s, b.imu.acc_s)
        assert torch.equal(a.imu.gyr_s, b.imu.gyr_s)
        assert not torch.equal(a.truth.R_ws, b.truth.R_ws)


def test_still_noise_is_that_of_the_real_sensor(fleet: list[Recording]) -> None:
    still = slice(0, 140)
    acc = torch.stack([r.imu.acc_s[still].std(0) for r in fleet]).median()
    gyr = torch.stack([r.imu.gyr_s[still].std(0) for r in fleet]).median()
    assert 0.008 < acc < 0.013
    assert 0.0014 < gyr < 0.0026


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shapes": ()}, "shapes"),
        ({"speeds": ()}, "speeds"),
        ({"duration_s": 10.0}, "duration_s"),
        ({"rate_hz": 0.0}, "rate_hz"),
        ({"wobble": -1.0}, "wobble"),
        ({"drag": (0.1, -0.1, 0.0)}, "drag"),
    ],
)
def test_flights_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(PERFECT, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"acc_noise": -1.0},
        {"tilt": (-0.1, 0.1)},
        {"lag": (0.1, 0.0)},
        {"arriving": (0.2, 1.0)},
        {"arriving": (0.9, 1.1)},
    ],
    ids=str,
)
def test_errors_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(SensorErrors(), **change)


@pytest.mark.parametrize("compressed", [True, False])
def test_nanobench_reads_back_what_was_written(
    fleet: list[Recording], tmp_path: Path, compressed: bool
) -> None:
    for flight in fleet[9:12]:
        path = write_nanobench(flight, tmp_path, compressed=compressed)
        assert path.name == f"{flight.name}_rep1.csv{'.gz' * compressed}"
        back = nanobench.read(tmp_path, f"{flight.name}_rep1")
        rows = len(back.imu)
        assert len(flight.imu) - 3 <= rows <= len(flight.imu)
        assert_near(back.imu.t, flight.imu.t[:rows], 1e-6)
        for a, b in zip(everything(back)[1:], everything(flight)[1:], strict=True):
            assert_near(a, b[:rows].to(a.dtype), 1e-5)
    found = nanobench.inspect(tmp_path)
    assert len(found) == 3
    assert 0.0 <= min(f.filled for f in found) <= max(f.filled for f in found) < 0.25
    assert (tmp_path / f"{fleet[9].name}_rep1_metadata.yaml").read_text().startswith("category: s")


def test_written_columns_have_the_published_names_and_units(
    fleet: list[Recording], tmp_path: Path
) -> None:
    flight = fleet[0]
    first, second = (write_nanobench(flight, tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    header, *rows = gzip.decompress(first.read_bytes()).decode().splitlines()
    assert header == PUBLISHED
    values = dict(zip(header.split(","), map(float, rows[100].split(",")), strict=True))
    assert abs(values["imu_acc_z"] - 1) < 0.05
    assert values["t"] > 1.7e9
    turned = Rotation.from_quat([values[f"q{axis}"] for axis in "xyzw"]).as_matrix()
    assert_near(flight.truth.R_ws[100].double(), torch.from_numpy(turned), 1e-6)


def test_the_reader_takes_perfect_rest_for_made_up_rows(tmp_path: Path) -> None:
    write_nanobench(fly(PERFECT, 1, seed=0)[0], tmp_path)
    flight = nanobench.inspect(tmp_path)[0]
    assert flight.valid_begin > 190


def test_recordings_that_do_not_fit_the_form_are_refused(tmp_path: Path) -> None:
    flight = fly(BRIEF, 1, seed=0)[0]
    with pytest.raises(ValueError, match="no onboard attitude"):
        write_nanobench(replace(flight, onboard_R_ws=None), tmp_path)
    truth = flight.truth
    shifted = Trajectory(truth.t + 0.005, truth.R_ws, truth.p_w, truth.v_w)
    with pytest.raises(ValueError, match="stamps of its own"):
        write_nanobench(replace(flight, truth=shifted), tmp_path)
    shorter = ImuSequence(truth.t[:9], flight.imu.acc_s[:9], flight.imu.gyr_s[:9])
    with pytest.raises(ValueError, match="stamps of its own"):
        write_nanobench(replace(flight, imu=shorter), tmp_path)
