"""Faults of the network and of the sensor behind it (F22-F30)."""

import math
from dataclasses import fields, replace
from functools import cache

import pytest
import torch
from flights import F64, Flight, awkward_belief, fly, measure, noisy
from runs import Schedule, noisy_network, run
from strategies import covariances, rotations
from test_consistency import assert_symmetric
from torch import Tensor

from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.filters.adaptation import Adaptation
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.network_error import NetworkError
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import StartStd, start_at_truth
from ginio.filters.strapdown import ImuNoise

CONFIGS = {"scekf": ScekfConfig, "inekf": InekfConfig}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
NOISE = ImuNoise(acc=2e-3, gyr=2e-4, acc_walk=5e-4, gyr_walk=1e-5)
START = StartStd(tilt=0.005, heading=0.005, velocity=0.05, position=0.01, bias_acc=0.02)
EVERY, RATE_HZ, RUNS = 5, 100.0, 12
SCHEDULE = Schedule(every=EVERY, span=20, frame=Frame.LAST)
STD = 0.03


@cache
def flown(seconds: float = 22.0) -> tuple[Flight, Flight]:
    torch.manual_seed(3)
    flight = fly(RUNS, seconds, RATE_HZ)
    zero = torch.zeros(RUNS, 3, dtype=F64)
    return flight, noisy(flight, NOISE, zero, zero)[0]


def started(filter_: CloningFilter, flight: Flight) -> Belief:
    state = (flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0])
    return filter_.start(start_at_truth(*state, START))


def identical(a: Belief, b: Belief) -> bool:
    pairs = [(a.P, b.P)]
    for part in ("state", "clones"):
        x, y = getattr(a, part), getattr(b, part)
        pairs += [(getattr(x, f.name), getattr(y, f.name)) for f in fields(x)]
    return all(torch.equal(x, y) for x, y in pairs)


def position_nees(filter_: CloningFilter, belief: Belief, flight: Flight, k: int) -> Tensor:
    e = (belief.state.p_w - flight.p_w[:, k]).unsqueeze(-1)
    P = filter_.export(belief).covariance[:, 6:9, 6:9]
    return (e.mT @ torch.linalg.solve(P, e)).flatten()


@each_config
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_f23_a_mean_that_is_not_finite_changes_nothing(config: type, value: float) -> None:
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 4)
    said = measure(torch.zeros(4, 3, dtype=F64), 1e3)
    said.mean[2, 1] = value
    after, innovation = filter_.update(belief, said, begin=0, end=2)
    assert identical(after[2], belief[2])
    assert after.health.skipped.tolist() == [0, 0, 1, 0]
    assert innovation.accepted.tolist() == [True, True, False, True]
    assert not identical(after[0], belief[0])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_f24_a_covariance_that_is_not_finite_changes_nothing(value: float) -> None:
    filter_ = InekfConfig(clones=3).build()
    belief = awkward_belief(filter_, 2)
    said = measure(torch.zeros(2, 3, dtype=F64), 1e3)
    said.covariance.log_std[1, 0] = value
    after, _ = filter_.update(belief, said, begin=0, end=2)
    assert identical(after[1], belief[1])
    assert after.health.skipped.tolist() == [0, 1]


@pytest.mark.parametrize("log_std", [-math.inf, -50.0, math.log(1e6), 50.0])
def test_f24_sigma_is_bounded_along_its_own_axes(log_std: float) -> None:
    """Bounds do not depend on the frame, and leave negative off-diagonals alone."""
    error = NetworkError(smallest_std=1e-3, largest_std=10.0)
    R = rotations(50, F64)
    like = torch.tensor([log_std, -1.0, 0.5], dtype=F64).expand(50, 3)
    white = error.split(Covariance(R, like), torch.zeros(50, dtype=F64)).white
    bounded = like.exp().clamp(1e-3, 10.0).square()
    torch.testing.assert_close(white, R * bounded.unsqueeze(-2) @ R.mT)
    assert (white < 0).any()


def test_f24_a_hundred_thousand_random_updates_leave_p_positive() -> None:
    runs, count = 1000, 104
    filter_ = ScekfConfig(clones=4, gate_probability=1.0, adaptation=None).build()
    belief = awkward_belief(filter_, runs)
    quiet = torch.zeros(runs, 1, 3, dtype=F64)
    dt = torch.full((1,), 0.05, dtype=F64)
    for k in range(4, count):
        belief = filter_.clone(filter_.propagate(belief, quiet, quiet, dt), k)
        random = covariances(runs, F64)
        sigma = Covariance(random.axes, 8 * random.log_std)
        said = Measurement(torch.randn(runs, 3, dtype=F64), sigma, Quantity.DISPLACEMENT)
        belief, _ = filter_.update(belief, said, begin=k - 2, end=k, frame=Frame.WORLD)
    assert (belief.health.accepted == 100).all()
    assert_symmetric(belief.P)


@each_config
def test_f25_an_overconfident_network_is_found_out(config: type) -> None:
    """Σ a hundred times too small: flagged within 5 s, and positions stay within twice their σ²."""
    flight, samples = flown()
    filter_ = config(clones=21, noise=NOISE).build()
    flagged, nees = [], []

    def network(k: int, mean: Tensor) -> Measurement:
        size = 10 * STD if k >= 500 else STD
        return measure(mean + size * torch.randn_like(mean), STD)

    def after(k: int, belief: Belief, _: object) -> None:
        flagged.append((k, belief.health.is_inconsistent.double().mean()))
        nees.append((k, position_nees(filter_, belief, flight, k).mean()))

    run(filter_, started(filter_, flight), flight, SCHEDULE, network, after=after, samples=samples)
    assert max(float(share) for k, share in flagged if k < 500) <= 0.1
    assert min(float(share) for k, share in flagged if k >= 1000) == 1.0
    assert float(torch.stack([n for k, n in nees if k >= 1000]).mean()) <= 6


@each_config
def test_f22_a_step_of_the_bias_is_found(config: type) -> None:
    """Within 10 s of a step of 0.3 m/s² and 0.02 rad/s the bias is there and the gate is open."""
    flight, samples = flown()
    stepped = replace(samples, acc_s=samples.acc_s.clone(), gyr_s=samples.gyr_s.clone())
    step = torch.tensor([0.3, -0.2, 0.1], dtype=F64)
    stepped.acc_s[:, 1000:] += step
    stepped.gyr_s[:, 1000:] += 0.02
    filter_ = config(clones=21, noise=NOISE).build()
    accepted = []

    def after(k: int, belief: Belief, innovation) -> None:
        if k > 2000:
            accepted.append(innovation.accepted.double().mean())

    network = noisy_network(STD, Quantity.DISPLACEMENT)
    end = run(
        filter_, started(filter_, flight), flight, SCHEDULE, network, after=after, samples=stepped
    )
    assert float(torch.stack(accepted).mean()) >= 0.95
    error = (end.state.bias_acc_s - step).norm(dim=-1)
    assert error.mean() <= 0.1


@each_config
def test_f26_a_biased_network_is_not_believed(config: type) -> None:
    """+0.5 m/s for 2 s: kept out at first, then doubted as the filter is; σ bounds the error."""
    flight, samples = flown()
    filter_ = config(clones=21, noise=NOISE).build()
    wrong = torch.tensor([0.5, 0.0, 0.0], dtype=F64)
    inside = []

    def network(k: int, mean: Tensor) -> Measurement:
        shift = wrong if 1000 <= k < 1200 else 0 * wrong
        return measure(mean + shift + STD * torch.randn_like(mean), STD)

    def after(k: int, belief: Belief, _: object) -> None:
        if k > 1000:
            e = (belief.state.p_w - flight.p_w[:, k]).norm(dim=-1)
            P = filter_.export(belief).covariance[:, 6:9, 6:9]
            sigma = P.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()
            inside.append((e <= 2 * sigma).double().mean())

    end = run(
        filter_, started(filter_, flight), flight, SCHEDULE, network, after=after, samples=samples
    )
    assert float(torch.stack(inside).mean()) >= 0.95
    assert (end.health.recoveries > 0).all()


def late_or_not(config: type, delay: int) -> tuple[Belief, Belief]:
    """One displacement, applied when its window ends, and later to its clones."""
    flight, samples = flown()
    filter_ = config(clones=32, noise=NOISE).build()
    begin, end = 100, 200
    mean = noisy_network(STD, Quantity.DISPLACEMENT)(0, flight.p_w[:, end] - flight.p_w[:, begin])
    runs = []
    for due in (end, end + delay):
        belief = started(filter_, flight)
        for k in range(0, 300, EVERY):
            belief = filter_.clone(belief, k)
            if k == due:
                belief, _ = filter_.update(belief, mean, begin=begin, end=end, frame=Frame.WORLD)
            part = slice(k, k + EVERY)
            belief = filter_.propagate(
                belief, samples.acc_s[:, part], samples.gyr_s[:, part], samples.dt[part]
            )
        runs.append(belief)
    return runs[0], runs[1]


@each_config
@pytest.mark.parametrize("delay", [5, 50])
def test_f27_a_late_result_is_applied_to_its_clones(config: type, delay: int) -> None:
    on_time, late = late_or_not(config, delay)
    assert late.health.accepted.sum() == on_time.health.accepted.sum() == RUNS
    std = on_time.P[:, 6:9, 6:9].diagonal(dim1=-2, dim2=-1).sqrt()
    assert ((late.state.p_w - on_time.state.p_w) / std).abs().max() < 0.02
    scale = on_time.P.abs().amax((-2, -1), keepdim=True)
    assert ((late.P - on_time.P) / scale).abs().max() < 5e-3


def test_f27_older_than_the_oldest_clone() -> None:
    filter_ = InekfConfig(clones=3).build()
    belief = awkward_belief(filter_, 2)
    moved = filter_.clone(belief, 3)
    after, innovation = filter_.update(
        moved, measure(torch.zeros(2, 3).double(), 1.0), begin=0, end=2
    )
    assert identical(after, moved)
    assert after.health.skipped.tolist() == [1, 1]
    assert not innovation.usable.any()


@each_config
def test_f27_a_belief_that_was_kept_is_the_way_back(config: type) -> None:
    """A late result, applied to the belief of its time and followed by the samples since, is
    bit-equal to one on time."""
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 4)
    said = replace(measure(torch.zeros(4, 3, dtype=F64), 1.0), quantity=Quantity.VELOCITY)
    acc_s, gyr_s = torch.randn(2, 4, 20, 3, dtype=F64)
    dt = torch.full((20,), 0.01, dtype=F64)
    on_time = filter_.propagate(filter_.update(belief, said, end=5)[0], acc_s, gyr_s, dt)
    filter_.propagate(belief, acc_s, gyr_s, dt)
    again = filter_.propagate(filter_.update(belief, said, end=5)[0], acc_s, gyr_s, dt)
    assert identical(on_time, again)


@each_config
@pytest.mark.parametrize("quantity", list(Quantity))
def test_f28_a_window_that_comes_again_changes_nothing(config: type, quantity: Quantity) -> None:
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 4)
    said = replace(measure(torch.zeros(4, 3, dtype=F64), 100.0), quantity=quantity)
    once, _ = filter_.update(belief, said, begin=0, end=2)
    twice, innovation = filter_.update(once, said, begin=0, end=2)
    assert identical(once, twice)
    assert not innovation.usable.any()
    assert (twice.health.skipped == 1).all()


def test_f28_windows_out_of_order_are_each_applied_once() -> None:
    filter_ = InekfConfig(clones=4).build()
    belief = awkward_belief(filter_, 4)
    said = measure(torch.zeros(4, 3, dtype=F64), 100.0)
    for end in (3, 2, 3, 2):
        belief, _ = filter_.update(belief, said, begin=0, end=end)
    assert belief.health.accepted.tolist() == [2] * 4
    assert belief.health.skipped.tolist() == [2] * 4


def test_f29_propagation_does_not_wait_for_a_network() -> None:
    """Nothing in a belief's propagation depends on whether updates came: results differ by them."""
    flight, samples = flown()
    filter_ = InekfConfig(clones=21, noise=NOISE).build()
    end = run(filter_, started(filter_, flight), flight, SCHEDULE, lambda *_: None, samples=samples)
    assert (end.health.accepted + end.health.rejected + end.health.skipped == 0).all()
    assert torch.isfinite(end.P).all()


def test_f30_a_remounted_sensor_gives_the_same_path() -> None:
    """100 rotations of the whole stream, pitch ±90° and gravity along ±x among them."""
    flight = fly(1, 20.0, RATE_HZ)
    zero = torch.zeros(1, 3, dtype=F64)
    samples = noisy(flight, NOISE, zero, zero)[0]
    R_ms = rotations(100, F64)
    quarter = [[[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [[0, 0, -1], [0, 1, 0], [1, 0, 0]]]
    R_ms[0], R_ms[1:3] = torch.eye(3), torch.tensor(quarter)
    turned = Flight(
        flight.dt,
        samples.acc_s @ R_ms.mT,
        samples.gyr_s @ R_ms.mT,
        flight.R_ws @ R_ms.mT.unsqueeze(1),
        flight.v_w.expand(100, -1, 3),
        flight.p_w.expand(100, -1, 3),
    )
    generator = torch.Generator().manual_seed(5)

    def network(_: int, mean: Tensor) -> Measurement:
        """Errs alike in every mounting, with a covariance that turns along."""
        e = torch.randn(3, generator=generator, dtype=F64) * torch.tensor([0.02, 0.05, 0.1])
        log_std = torch.tensor([0.02, 0.05, 0.1], dtype=F64).log().expand(100, 3)
        sigma = Covariance(R_ms, log_std)
        return Measurement(mean + R_ms @ e, sigma, Quantity.VELOCITY)

    schedule = replace(SCHEDULE, quantity=Quantity.VELOCITY)
    filter_ = InekfConfig(clones=21, noise=NOISE, network=NetworkError(correlation_s=0.5)).build()
    paths = []
    run(
        filter_, started(filter_, turned), turned, schedule, network,
        after=lambda _k, b, _i: paths.append(b.state.p_w),
    )  # fmt: skip
    errors = torch.stack(paths) - turned.p_w[0, EVERY::EVERY].unsqueeze(1)
    ate = errors.square().sum(-1).mean(0).sqrt()
    assert ate[0] > 0.01
    assert (ate - ate[0]).abs().max() <= 1e-6


# Overlapping windows


def overlapping(correlated: bool) -> tuple[float, float]:
    """Mean NIS and NEES of position where neighbouring windows share the error of their samples."""
    flight, samples = flown()
    error = NetworkError(correlation_s=0.5 if correlated else 0.0)
    filter_ = InekfConfig(clones=21, noise=NOISE, network=error, adaptation=None).build()
    torch.manual_seed(11)
    steps = 0.1 * torch.randn(RUNS, 1000, 3, dtype=F64) / 20**0.5
    nis, nees = [], []

    def network(k: int, mean: Tensor) -> Measurement:
        last = k // EVERY
        return measure(mean + steps[:, last - 20 : last].sum(1), 0.1)

    def after(k: int, belief: Belief, innovation) -> None:
        if k > 500:
            nis.append(innovation.nis.mean())
            nees.append(position_nees(filter_, belief, flight, k).mean())

    run(filter_, started(filter_, flight), flight, SCHEDULE, network, after=after, samples=samples)
    return float(torch.stack(nis).mean()), float(torch.stack(nees).mean())


def test_overlapping_windows_are_not_counted_twice() -> None:
    """With a memory of the network's error, positions err as much as the filter says."""
    nis, nees = overlapping(correlated=True)
    assert nees <= 6
    assert 1.0 <= nis <= 4.5
    _, naive = overlapping(correlated=False)
    assert naive > 2 * nees


def test_a_fading_error_is_filtered_exactly() -> None:
    """Where the network errs as the model says, innovations and positions are honest."""
    flight, samples = flown()
    error = NetworkError(correlation_s=1.0, white_share=0.2)
    filter_ = ScekfConfig(clones=21, noise=NOISE, network=error, adaptation=None).build()
    u = torch.randn(RUNS, 3, dtype=F64)
    nis, nees = [], []
    memory = math.exp(-EVERY / RATE_HZ / 1.0)

    def network(_: int, mean: Tensor) -> Measurement:
        nonlocal u
        u = memory * u + (1 - memory**2) ** 0.5 * torch.randn_like(u)
        white = torch.randn_like(u)
        return measure(mean + 0.1 * (0.8**0.5 * u + 0.2**0.5 * white), 0.1)

    def after(k: int, belief: Belief, innovation) -> None:
        if innovation is not None:
            nis.append(innovation.nis.mean())
            nees.append(position_nees(filter_, belief, flight, k).mean())

    run(filter_, started(filter_, flight), flight, SCHEDULE, network, after=after, samples=samples)
    assert float(torch.stack(nis).mean()) == pytest.approx(3, rel=0.05)
    assert 2 <= float(torch.stack(nees).mean()) <= 4


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"white_share in \(0, 1\]"):
        NetworkError(white_share=0.0)
    with pytest.raises(ValueError, match="nis_limit above 3"):
        Adaptation(nis_limit=2.0)
    with pytest.raises(ValueError, match="clones must not be negative; found -1"):
        ScekfConfig(clones=-1)
    with pytest.raises(ValueError, match="gate probability must be in"):
        InekfConfig(gate_probability=0.0)
