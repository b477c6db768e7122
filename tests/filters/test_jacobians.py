"""Every F, G and H against forward-mode differentiation through ⊞ and ⊟."""

import itertools
from dataclasses import replace

import pytest
import torch
from flights import F64, G_W, awkward_attitudes, awkward_belief, exact_step
from strategies import assert_near, near_half_turn, near_identity, uniform
from torch import Tensor

from ginio.core.measurement import Quantity
from ginio.filters import belief as beliefs
from ginio.filters import observation
from ginio.filters.cloning import CloningFilter
from ginio.filters.inekf import InekfConfig
from ginio.filters.observation import Frame
from ginio.filters.scekf import ScekfConfig
from ginio.filters.strapdown import ImuNoise, State, advance, integrate
from ginio.geometry import frames, so3
from ginio.geometry.integrals import turning

STATES = 100
FILTERS = {"scekf": ScekfConfig(clones=3).build(), "inekf": InekfConfig(clones=3).build()}
each_filter = pytest.mark.parametrize("filter_", FILTERS.values(), ids=FILTERS)


def batched_jacobian(function, x: Tensor) -> Tensor:
    """Of a function that treats each row by itself: all rows are moved alike."""
    return torch.func.jacfwd(lambda d: function(x + d))(torch.zeros_like(x[0]))


def assert_relative(actual: Tensor, expected: Tensor, tol: float = 1e-9) -> None:
    scale = expected.abs().amax((-2, -1), keepdim=True)
    assert_near(actual / scale, expected / scale, tol)


def rates(count: int) -> Tensor:
    """Angles of a sample: tiny, about a half turn, and everything between."""
    third = count // 3
    parts = (near_identity(third, F64), near_half_turn(third, F64), uniform(count - 2 * third, F64))
    return torch.cat(parts)


def test_integrals_against_the_matrix_exponential() -> None:
    phi, a = rates(STATES), torch.randn(STATES, 3, dtype=F64)
    dR, dv, dp = exact_step(a, phi, 1.0)
    found = turning(phi)
    assert_near(found.gamma_0, dR, 1e-13)
    assert_near(so3.rotate(found.gamma_1, a), dv, 1e-13)
    assert_near(so3.rotate(found.gamma_2, a), dp, 1e-13)
    assert_near(found.gamma_1, so3.left_jacobian(phi), 1e-14)


def test_derivatives_of_the_integrals() -> None:
    phi, a = rates(STATES), torch.randn(STATES, 3, dtype=F64)
    by_first = batched_jacobian(lambda x: so3.rotate(turning(x).gamma_1, a), phi)
    by_second = batched_jacobian(lambda x: so3.rotate(turning(x).gamma_2, a), phi)
    first, second = turning(phi).derivatives(a)
    assert_relative(first, by_first)
    assert_relative(second, by_second)


def test_derivative_of_the_heading() -> None:
    R_ws = awkward_attitudes(STATES)
    row, exists = frames.yaw_gradient(R_ws)

    def turned(theta: Tensor) -> Tensor:
        relative = frames.yaw_rotation(R_ws).mT @ frames.yaw_rotation(so3.retract(R_ws, theta))
        return torch.atan2(relative[..., 1, 0], relative[..., 0, 0]).unsqueeze(-1)

    expected = batched_jacobian(turned, torch.zeros(STATES, 3, dtype=F64))
    assert exists.sum() > 90
    assert_relative(row[exists].unsqueeze(-2), expected[exists])


def chunk(count: int, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    dt = 0.02 + 0.1 * torch.rand(count, samples, dtype=F64)
    gyr_s = torch.stack([rates(count) for _ in range(samples)], 1) / dt.unsqueeze(-1)
    return 10 * torch.randn(count, samples, 3, dtype=F64), gyr_s, dt


@each_filter
@pytest.mark.parametrize("samples", [1, 7])
def test_transition(filter_: CloningFilter, samples: int) -> None:
    belief = awkward_belief(filter_, STATES)
    acc_s, gyr_s, dt = chunk(STATES, samples)

    def step(state: State) -> State:
        acc, gyr = acc_s - state.bias_acc_s.unsqueeze(1), gyr_s - state.bias_gyr_s.unsqueeze(1)
        return advance(state, integrate(acc, gyr, dt, ImuNoise()), G_W)

    after = step(belief.state)

    def error_after(delta: Tensor) -> Tensor:
        zeros = torch.zeros(STATES, belief.P.shape[-1] - 15, dtype=F64)
        moved = beliefs.retract(filter_.chart, belief, torch.cat((delta, zeros), -1))
        return beliefs.state_error(filter_.chart, after, step(moved.state))

    expected = batched_jacobian(error_after, torch.zeros(STATES, 15, dtype=F64))
    acc, gyr = (
        acc_s - belief.state.bias_acc_s.unsqueeze(1),
        gyr_s - belief.state.bias_gyr_s.unsqueeze(1),
    )
    increment = integrate(acc, gyr, dt, ImuNoise())
    F, _ = filter_._transition(belief.state, after, increment)
    assert_relative(F, expected)


@each_filter
def test_effect_of_noise(filter_: CloningFilter) -> None:
    """Q is that of independent errors of the samples, and of biases that step between them."""
    belief = awkward_belief(filter_, STATES)
    acc_s, gyr_s, dt = chunk(STATES, 3)
    extra = torch.rand(STATES, 3, 6, dtype=F64)
    noise = ImuNoise(acc=0.3, gyr=0.2, acc_walk=0.4, gyr_walk=0.1)
    state = belief.state
    acc, gyr = acc_s - state.bias_acc_s.unsqueeze(1), gyr_s - state.bias_gyr_s.unsqueeze(1)
    increment = integrate(acc, gyr, dt, noise, extra)
    after = advance(state, increment, G_W)

    def error_after(errors: Tensor) -> Tensor:
        sample, step = errors.unflatten(-1, (2, 3, 6)).unbind(-3)
        bias = step.cumsum(-2)
        wrong = sample - torch.cat((torch.zeros_like(bias[:, :1]), bias[:, :-1]), 1)
        moved = advance(
            state, integrate(acc + wrong[..., :3], gyr + wrong[..., 3:], dt, noise), G_W
        )
        other = replace(
            moved,
            bias_acc_s=state.bias_acc_s + bias[:, -1, :3],
            bias_gyr_s=state.bias_gyr_s + bias[:, -1, 3:],
        )
        return beliefs.state_error(filter_.chart, after, other)

    G = batched_jacobian(error_after, torch.zeros(STATES, 36, dtype=F64))
    density = torch.tensor([0.3] * 3 + [0.2] * 3, dtype=F64)
    walk = torch.tensor([0.4] * 3 + [0.1] * 3, dtype=F64)
    h = dt.unsqueeze(-1)
    variance = torch.cat(
        ((density**2 / h + extra.square()).flatten(1), (walk**2 * h).flatten(1)), -1
    )
    _, Q = filter_._transition(state, after, increment)
    assert_relative(Q, G * variance.unsqueeze(-2) @ G.mT)


@each_filter
@pytest.mark.parametrize(
    ("quantity", "frame"),
    list(itertools.product(Quantity, Frame)),
    ids=lambda x: x.value,
)
def test_observation(filter_: CloningFilter, quantity: Quantity, frame: Frame) -> None:
    belief = awkward_belief(filter_, STATES)
    window = observation.span(belief, quantity, 0, 2)
    root = torch.randn(STATES, 3, 3, dtype=F64)
    root = root + root.mT

    def seen(delta: Tensor) -> Tensor:
        moved = beliefs.retract(filter_.chart, belief, delta)
        ends = observation.span(moved, quantity, 0, 2)
        return observation.predict(filter_.chart, moved, quantity, frame, ends, root).value

    expected = batched_jacobian(seen, torch.zeros(STATES, belief.P.shape[-1], dtype=F64))
    found = observation.predict(filter_.chart, belief, quantity, frame, window, root)
    assert found.exists.sum() > 90
    assert_relative(found.H[found.exists], expected[found.exists])


@each_filter
def test_retraction_and_its_inverse(filter_: CloningFilter) -> None:
    belief = awkward_belief(filter_, STATES)
    delta = torch.randn(STATES, belief.P.shape[-1], dtype=F64)
    delta[:, :3] = rates(STATES)
    moved = beliefs.retract(filter_.chart, belief, delta)
    error = beliefs.state_error(filter_.chart, belief.state, moved.state)
    half_turn = delta[:, :3].norm(dim=-1) > 3.1415
    assert_near(error[~half_turn], delta[~half_turn, :15], 1e-6)


@each_filter
def test_usual_coordinates(filter_: CloningFilter) -> None:
    """The exported covariance is that of differences in the world."""
    usual = FILTERS["scekf"].chart
    belief = awkward_belief(filter_, STATES)

    def error(delta: Tensor) -> Tensor:
        zeros = torch.zeros(STATES, belief.P.shape[-1] - 15, dtype=F64)
        moved = beliefs.retract(filter_.chart, belief, torch.cat((delta, zeros), -1))
        return beliefs.state_error(usual, belief.state, moved.state)

    T = batched_jacobian(error, torch.zeros(STATES, 15, dtype=F64))
    expected = T @ belief.P[:, :15, :15] @ T.mT
    assert_relative(filter_.export(belief).covariance, expected)
