"""Exact where all is exact; as uncertain as it says where it is not."""

from dataclasses import replace

import pytest
import torch
from flights import F64, G_W, Flight, awkward_belief, fly, measure, noisy
from runs import Schedule, exact, noisy_network, run
from scipy.stats import chi2
from strategies import assert_near, scipy_matrices, uniform, yaw_matrices
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.filters import belief as beliefs
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.start import StartStd, start_at_truth
from ginio.filters.strapdown import ImuNoise
from ginio.geometry import so3

CONFIGS = {"scekf": ScekfConfig, "inekf": InekfConfig}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
BLOCKS = {"attitude": slice(0, 3), "velocity": slice(3, 6), "position": slice(6, 9)}
BLOCKS |= {"bias_acc": slice(9, 12), "bias_gyr": slice(12, 15)}


def start_at(flight: Flight, std: StartStd | None = None):
    return start_at_truth(flight.R_ws[:, 0], flight.v_w[:, 0], flight.p_w[:, 0], std)


def start_near(flight: Flight, std: StartStd, bias_acc: Tensor, bias_gyr: Tensor):
    """A start whose errors are drawn from its own covariance, in the usual coordinates."""
    start = start_at(flight, std)
    root = torch.linalg.cholesky(start.covariance)
    e = so3_rotate(root, torch.randn(len(flight.R_ws), 15, dtype=F64))
    # Truth = estimate ⊞ error, so the estimate stands before the truth.
    state = start.state
    return replace(
        start,
        state=replace(
            state,
            R_ws=state.R_ws @ so3.exp(-e[:, :3]),
            v_w=state.v_w - e[:, 3:6],
            p_w=state.p_w - e[:, 6:9],
            bias_acc_s=bias_acc - e[:, 9:12],
            bias_gyr_s=bias_gyr - e[:, 12:],
        ),
    )


def so3_rotate(matrix: Tensor, v: Tensor) -> Tensor:
    return (matrix @ v.unsqueeze(-1)).squeeze(-1)


# Exactness


@each_config
@pytest.mark.parametrize(
    ("quantity", "frame"),
    [
        (Quantity.DISPLACEMENT, Frame.WORLD),
        (Quantity.DISPLACEMENT, Frame.HEADING),
        (Quantity.DISPLACEMENT, Frame.LAST),
        (Quantity.VELOCITY, Frame.LAST),
        (Quantity.VELOCITY, Frame.WORLD),
    ],
)
def test_nothing_is_lost_where_nothing_is_wrong(
    config: type, quantity: Quantity, frame: Frame
) -> None:
    """60 s of motion, exact samples, exact measurements: position to a micrometre."""
    flight = fly(2, 60.0, 25.0)
    filter_ = config(clones=6).build()
    schedule = Schedule(every=25, span=5, quantity=quantity, frame=frame)
    end = run(filter_, filter_.start(start_at(flight)), flight, schedule, exact(0.02, quantity))
    assert (end.state.p_w - flight.p_w[:, -1]).norm(dim=-1).max() < 1e-6
    assert (end.health.accepted == 56).all()
    assert_symmetric(end.P)


def assert_symmetric(P: Tensor) -> None:
    largest = P.abs().amax((-2, -1))
    assert ((P - P.mT).abs().amax((-2, -1)) <= 1e-12 * largest).all()
    smallest = torch.linalg.eigvalsh(0.5 * (P + P.mT))[..., 0]
    assert (smallest >= -1e-12 * largest).all()


@each_config
def test_a_chunk_is_its_samples(config: type) -> None:
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 8)
    acc_s, gyr_s = torch.randn(2, 8, 40, 3, dtype=F64)
    acc_s, dt = 10 * acc_s, 0.005 + 0.01 * torch.rand(8, 40, dtype=F64)
    extra = torch.rand(8, 40, 6, dtype=F64)
    at_once = filter_.propagate(belief, acc_s, gyr_s, dt, extra)
    one_by_one = belief
    for k in range(40):
        part = slice(k, k + 1)
        one_by_one = filter_.propagate(
            one_by_one, acc_s[:, part], gyr_s[:, part], dt[:, part], extra[:, part]
        )
    assert_same(at_once, one_by_one, 1e-12)


def assert_same(a: Belief, b: Belief, tol: float) -> None:
    assert_near(a.state.R_ws, b.state.R_ws, tol)
    assert_near(a.state.v_w, b.state.v_w, tol * 10)
    assert_near(a.state.p_w, b.state.p_w, tol * 10)
    assert_near(a.P / b.P.abs().max(), b.P / b.P.abs().max(), tol)


@each_config
def test_a_clone_made_on_the_way_is_a_clone(config: type) -> None:
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 8)
    acc_s, gyr_s = torch.randn(2, 8, 5, 3, dtype=F64)
    dt = torch.full((5,), 0.01, dtype=F64)
    after = filter_.clone(filter_.propagate(belief, acc_s, gyr_s, dt), 9)
    on_the_way = filter_.propagate(belief, acc_s, gyr_s, dt, name=9)
    assert torch.equal(after.P, on_the_way.P)
    assert torch.equal(after.clones.p_w, on_the_way.clones.p_w)
    assert torch.equal(after.clones.name, on_the_way.clones.name)


@each_config
def test_samples_of_no_length_count_for_nothing(config: type) -> None:
    """So that runs of different lengths share a batch."""
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 2)
    acc_s, gyr_s = torch.randn(2, 2, 6, 3, dtype=F64)
    dt = torch.full((2, 6), 0.01, dtype=F64)
    dt[1, 3:] = 0
    both = filter_.propagate(belief, acc_s, gyr_s, dt)
    short = filter_.propagate(belief[1:], acc_s[1:, :3], gyr_s[1:, :3], dt[1:, :3])
    assert_same(both[1:], short, 1e-14)


@each_config
def test_one_run_of_a_batch_is_that_run_alone(config: type) -> None:
    filter_ = config(clones=3).build()
    belief = awkward_belief(filter_, 8)
    acc_s, gyr_s = torch.randn(2, 8, 10, 3, dtype=F64)
    said = measure(torch.randn(8, 3, dtype=F64), 0.3)
    dt = torch.full((10,), 0.01, dtype=F64)

    def steps(b: Belief, part) -> Belief:
        b = filter_.clone(filter_.propagate(b, acc_s[part], gyr_s[part], dt), 7)
        mean = measure(said.mean[part], 0.3)
        return filter_.update(b, mean, begin=1, end=7, frame=Frame.LAST)[0]

    together = steps(belief, slice(None))
    assert_same(together[2:3], steps(belief[2:3], slice(2, 3)), 1e-13)
    assert_same(together[2], steps(belief[2], 2), 1e-13)


# Uncertainty


@pytest.mark.parametrize("rate_hz", [50.0, 100.0, 400.0])
def test_noise_does_not_depend_on_the_rate(rate_hz: float) -> None:
    """A second of noise against the integral of the continuous equations (Van Loan)."""
    noise = ImuNoise(acc=0.02, gyr=0.003, acc_walk=0.01, gyr_walk=0.004)
    count = round(rate_hz)
    acc_s = torch.tensor([0.5, -0.3, 9.0], dtype=F64).expand(count, 3)
    gyr_s = torch.tensor([0.4, 0.8, -0.6], dtype=F64).expand(count, 3)
    filter_ = InekfConfig(clones=0, noise=noise).build()
    zero = torch.zeros(3, dtype=F64)
    exact_start = StartStd(**dict.fromkeys(vars(StartStd()), 0.0))
    start = start_at_truth(torch.eye(3, dtype=F64), zero, zero, exact_start)
    dt = torch.full((count,), 1 / rate_hz, dtype=F64)
    found = filter_.propagate(filter_.start(start), acc_s, gyr_s, dt).P[:15, :15]
    expected = van_loan(acc_s[0], gyr_s[0], noise, 1.0)
    scale = expected.diagonal().sqrt()
    assert_near(found / scale / scale[:, None], expected / scale / scale[:, None], 1.0 / rate_hz)


def van_loan(acc_s: Tensor, gyr_s: Tensor, noise: ImuNoise, T: float) -> Tensor:
    A, eye = torch.zeros(15, 15, dtype=F64), torch.eye(3, dtype=F64)
    for k in range(3):
        A[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = -so3.hat(gyr_s)
    A[3:6, :3], A[6:9, 3:6], A[3:6, 9:12], A[:3, 12:] = -so3.hat(acc_s), eye, -eye, -eye
    D = torch.zeros(15, dtype=F64)
    D[:3], D[3:6] = noise.gyr**2, noise.acc**2
    D[9:12], D[12:] = noise.acc_walk**2, noise.gyr_walk**2
    top = torch.cat((-A, torch.diag(D)), -1)
    both = torch.linalg.matrix_exp(torch.cat((top, torch.cat((0 * A, A.mT), -1))) * T)
    return both[15:, 15:].mT @ both[:15, 15:]


MATCHED = ImuNoise(acc=5e-3, gyr=1e-3, acc_walk=3e-3, gyr_walk=3e-4)
MATCHED_START = StartStd(
    tilt=0.02, heading=0.02, velocity=0.1, position=0.05, bias_acc=0.05, bias_gyr=0.005
)


def nees_of_runs(config: type, noise: ImuNoise, runs: int = 50, **network: object):
    """NEES by block and time of matched runs, of which the filter believes the given noise."""
    flight = fly(runs, 20.0, 50.0)
    bias_acc, bias_gyr = (
        0.1 * torch.randn(runs, 3, dtype=F64),
        0.01 * torch.randn(runs, 3, dtype=F64),
    )
    samples, b_a, b_g = noisy(flight, MATCHED, bias_acc, bias_gyr)
    slots = 0 if config is InekfConfig else 11
    filter_ = config(clones=slots, noise=noise, adaptation=None, **network).build()
    belief = filter_.start(start_near(flight, MATCHED_START, bias_acc, bias_gyr))
    found: dict[str, list[Tensor]] = {name: [] for name in BLOCKS}

    def after(k: int, b: Belief, _: object) -> None:
        error = beliefs.state_error(filter_.chart, b.state, flight.state(k, b_a[:, k], b_g[:, k]))
        for name, block in BLOCKS.items():
            P, e = b.P[:, block, block], error[:, block].unsqueeze(-1)
            found[name].append((e.mT @ torch.linalg.solve(P, e)).mean())

    schedule = Schedule(every=5, span=10, frame=Frame.HEADING)
    if config is InekfConfig:
        schedule = replace(schedule, quantity=Quantity.VELOCITY, frame=Frame.LAST)
    run(
        filter_, belief, flight, schedule, noisy_network(0.05, schedule.quantity),
        after=after, samples=samples,
    )  # fmt: skip
    return {name: torch.stack(values) for name, values in found.items()}


def share_inside(nees: Tensor, runs: int = 50) -> float:
    low, high = (float(chi2.ppf(q, 3 * runs)) / runs for q in (0.0005, 0.9995))
    return float(((nees > low) & (nees < high)).double().mean())


@each_config
def test_uncertainty_is_honest(config: type) -> None:
    """50 runs of matched noise: every block inside the 99.9 % band at 95 % of the times."""
    shares = {name: share_inside(nees) for name, nees in nees_of_runs(config, MATCHED).items()}
    assert min(shares.values()) >= 0.95, shares


@each_config
def test_and_the_test_would_tell(config: type) -> None:
    """The same with a tenth of the process noise fails."""
    tenth = ImuNoise(**{name: value / 10**0.5 for name, value in vars(MATCHED).items()})
    shares = {name: share_inside(nees) for name, nees in nees_of_runs(config, tenth).items()}
    assert min(shares.values()) < 0.95, shares


@each_config
def test_the_gate_rejects_what_it_says(config: type) -> None:
    """20,000 matched updates through a gate of 1 %: 0.78 to 1.24 % rejected."""
    runs = 200
    flight = fly(runs, 12.0, 50.0)
    zero = torch.zeros(runs, 3, dtype=F64)
    samples, _, _ = noisy(flight, MATCHED, zero, zero)
    filter_ = config(clones=6, noise=MATCHED, gate_probability=0.99).build()
    belief = filter_.start(start_near(flight, MATCHED_START, zero, zero))
    schedule = Schedule(every=5, span=5, frame=Frame.LAST)
    network = noisy_network(0.05, Quantity.DISPLACEMENT)
    health = run(filter_, belief, flight, schedule, network, samples=samples).health
    rejected, accepted = int(health.rejected.sum()), int(health.accepted.sum())
    assert rejected + accepted == 200 * 116
    assert 0.0078 <= rejected / (rejected + accepted) <= 0.0124


# Symmetry


def turned_world(belief: Belief, R_aw: Tensor, shift_a: Tensor) -> Belief:
    state, clones = belief.state, belief.clones
    return replace(
        belief,
        state=replace(
            state,
            R_ws=R_aw @ state.R_ws,
            v_w=so3.rotate(R_aw, state.v_w),
            p_w=so3.rotate(R_aw, state.p_w) + shift_a,
        ),
        clones=replace(
            clones,
            R_ws=R_aw.unsqueeze(-3) @ clones.R_ws,
            p_w=so3.rotate(R_aw.unsqueeze(-3), clones.p_w) + shift_a.unsqueeze(-2),
        ),
    )


@pytest.mark.parametrize("turn", ["yaw", "any"])
def test_the_invariant_filter_knows_no_world(turn: str) -> None:
    """Propagation and update commute with a change of the world frame, gravity turning with it."""
    runs = 20
    filter_ = InekfConfig(clones=3).build()
    belief = awkward_belief(filter_, runs)
    acc_s, gyr_s = torch.randn(2, runs, 30, 3, dtype=F64)
    acc_s, dt = 10 * acc_s, torch.full((30,), 0.01, dtype=F64)
    shift_a = 100 * torch.randn(runs, 3, dtype=F64)
    said = measure(torch.randn(runs, 3, dtype=F64), 0.5)
    rotations = yaw_matrices(torch.randn(runs, dtype=F64)) if turn == "yaw" else None
    if rotations is None:
        rotations = scipy_matrices(uniform(1, F64)).expand(runs, 3, 3)
    gravity_a = so3.rotate(rotations[0], G_W) if turn == "any" else G_W
    other = InekfConfig(clones=3, gravity_w=tuple(gravity_a.tolist())).build()

    def steps(f: CloningFilter, b: Belief) -> tuple[Belief, Belief]:
        moved = f.clone(f.propagate(b, acc_s, gyr_s, dt), 9)
        return moved, f.update(moved, said, begin=1, end=9, frame=Frame.LAST)[0]

    for here, there in zip(
        steps(filter_, belief), steps(other, turned_world(belief, rotations, shift_a)), strict=True
    ):
        expected = turned_world(here, rotations, shift_a)
        assert_near(there.state.R_ws, expected.state.R_ws, 1e-10)
        assert_near(there.state.v_w, expected.state.v_w, 1e-10)
        assert_near(there.state.p_w, expected.state.p_w, 1e-10)
        assert_near(there.P, here.P, 1e-10)


@each_config
def test_nothing_is_learnt_of_heading_and_place(config: type) -> None:
    """Relative measurements leave position and heading as uncertain as they were."""
    runs = 4
    flight = fly(runs, 20.0, 50.0)
    filter_ = config(clones=6, noise=MATCHED).build()
    std = replace(MATCHED_START, heading=0.5, position=3.0)
    belief = filter_.start(start_at(flight, std))
    gauge = gauge_directions(filter_, flight, belief)
    before = information(belief.P[:, :9, :9], gauge)
    schedule = Schedule(every=5, span=5, frame=Frame.LAST)
    end = run(filter_, belief, flight, schedule, exact(0.02, Quantity.DISPLACEMENT))
    after = information(end.P[:, :9, :9], gauge_directions(filter_, flight, end))
    assert (after <= before * (1 + 1e-6)).all()


def gauge_directions(filter_: CloningFilter, flight: Flight, belief: Belief) -> Tensor:
    """Errors of attitude, velocity and position that a yaw and a shift of the world make."""
    state = belief.state
    up = torch.tensor([0.0, 0.0, 1.0], dtype=F64).expand_as(state.p_w)
    zero = torch.zeros_like(up)
    axes = filter_.chart.axes(state.R_ws).mT
    turned = [so3.rotate(axes, torch.linalg.cross(up, x)) for x in (state.v_w, state.p_w)]
    yaw = torch.cat((so3.rotate(state.R_ws.mT, up), *turned), -1)
    shifts = [torch.cat((zero, zero, axes[..., :, k]), -1) for k in range(3)]
    return torch.stack((yaw, *shifts), -1)


def information(P: Tensor, directions: Tensor) -> Tensor:
    return (directions * torch.linalg.solve(P, directions)).sum(-2)
