import numpy as np
import pytest
import scipy.linalg
import torch
from strategies import (
    Sampler,
    assert_near,
    assert_rotations,
    each_sampler,
    rotations,
    unit_vectors,
)
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.projection import (
    gram_schmidt,
    non_degeneracy_penalty,
    polar,
    polar_newton,
)

COUNT = 200

each_mode = pytest.mark.parametrize("proper", [True, False], ids=["proper", "improper"])


def with_singular_values(values: Tensor) -> Tensor:
    """Matrices with the given singular values and random singular vectors, det > 0."""
    count, dtype = len(values), values.dtype
    return rotations(count, dtype) @ (values.unsqueeze(-1) * rotations(count, dtype))


def well_conditioned(count: int, dtype: torch.dtype) -> Tensor:
    values = 0.5 + torch.rand(count, 3, dtype=dtype) + torch.tensor([2.0, 1.0, 0.0], dtype=dtype)
    return with_singular_values(values)


def degenerate(count: int) -> Tensor:
    """Float32 matrices at and around every place where something in an SVD goes wrong."""
    gaussian = torch.randn(count, 3, 3)
    rotation = rotations(count, torch.float32)
    signed = (
        torch.eye(3)[torch.rand(count, 3).argsort(-1)] * torch.randn(count, 3).sign()[..., None]
    )
    spread = torch.rand(count, 3) + 0.1
    two_equal = with_singular_values(spread[:, [0, 0, 1]])
    three_equal = with_singular_values(spread[:, [0, 0, 0]])
    near_loss = with_singular_values(torch.cat((spread[:, :2], torch.full((count, 1), 1e-8)), -1))
    rank_one = unit_vectors(count, torch.float32)[..., None] * spread[:, None]
    zero = torch.zeros(count, 3, 3)
    cases = (gaussian, rotation, signed, two_equal, three_equal, near_loss, rank_one, zero)
    every = torch.cat(cases)
    return torch.cat((every, -every, every * torch.tensor([1.0, 1.0, -1.0])))


def svd_formula(a: Tensor, *, proper: bool) -> Tensor:
    u, _, vt = torch.linalg.svd(a)
    last = torch.linalg.det(u @ vt).sign() if proper else torch.ones_like(a[..., 0, 0])
    flip = torch.stack((torch.ones_like(last), torch.ones_like(last), last), dim=-1)
    return (u * flip.unsqueeze(-2)) @ vt


def grad_of(function: Sampler, a: Tensor, weight: Tensor) -> Tensor:
    a = a.detach().requires_grad_()
    return torch.autograd.grad((function(a) * weight).sum(), a)[0]


@each_mode
def test_polar_agrees_with_scipy(*, proper: bool, dtype: torch.dtype, tol: float) -> None:
    a = well_conditioned(COUNT, dtype)
    expected = np.stack([scipy.linalg.polar(m)[0] for m in a.double().numpy()])
    assert_near(polar(a, proper=proper), torch.from_numpy(expected).to(dtype), tol)


def test_proper_polar_of_a_mirrored_matrix_is_the_nearest_rotation(
    dtype: torch.dtype, tol: float
) -> None:
    a = -well_conditioned(COUNT, dtype)
    u, _, vt = np.linalg.svd(a.double().numpy())
    expected = torch.from_numpy(u @ np.diag([1.0, 1.0, -1.0]) @ vt).to(dtype)
    nearest = polar(a)
    assert_near(nearest, expected, tol)
    assert_rotations(nearest, tol)
    rivals = rotations(2000, dtype).unsqueeze(1)
    assert ((nearest - a).norm(dim=(-2, -1)) <= (rivals - a).norm(dim=(-2, -1)) + tol).all()


def test_improper_polar_of_a_mirrored_matrix_is_mirrored(dtype: torch.dtype, tol: float) -> None:
    a = well_conditioned(COUNT, dtype)
    mirrored = polar(-a, proper=False)
    assert_near(mirrored, -polar(a), tol)
    assert_near(torch.linalg.det(mirrored), -torch.ones(COUNT, dtype=dtype), tol)


@each_sampler
def test_polar_of_a_rotation_is_itself(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R = rotations(COUNT, dtype, sampler)
    assert_near(polar(R), R, tol)


@each_mode
@each_sampler
def test_polar_turns_with_its_argument(
    *, sampler: Sampler, proper: bool, dtype: torch.dtype, tol: float
) -> None:
    R = rotations(2 * COUNT, dtype, sampler)
    a = torch.cat((well_conditioned(COUNT, dtype), -well_conditioned(COUNT, dtype)))
    turned = polar(R @ a, proper=proper)
    assert_near(turned, R @ polar(a, proper=proper), 10 * tol)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_polar_does_not_see_scale(scale: float, dtype: torch.dtype, tol: float) -> None:
    a = well_conditioned(COUNT, dtype)
    assert_near(polar(scale * a), polar(a), tol)


def test_polar_of_rank_loss_is_still_a_rotation(tol: float, dtype: torch.dtype) -> None:
    assert_rotations(polar(degenerate(COUNT).to(dtype)), tol)


@each_mode
def test_gradcheck_polar(*, proper: bool) -> None:
    a = torch.cat((torch.randn(6, 3, 3), well_conditioned(2, torch.float64)))
    a = torch.cat((a, rotations(3, torch.float64), 2 * torch.eye(3).unsqueeze(0)))
    a.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: polar(x, proper=proper), a)


@each_mode
@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
def test_polar_gradient_agrees_with_autograd_through_the_svd(*, proper: bool, sign: int) -> None:
    a = sign * well_conditioned(COUNT, torch.float64)
    weight = torch.randn_like(a)
    ours = grad_of(lambda x: polar(x, proper=proper), a, weight)
    autograd = grad_of(lambda x: svd_formula(x, proper=proper), a, weight)
    assert_near(ours, autograd, 1e-9)


def test_autograd_through_the_svd_fails_where_polar_does_not() -> None:
    a = torch.eye(3, dtype=torch.float64).unsqueeze(0)
    weight = torch.randn_like(a)
    assert not torch.isfinite(grad_of(lambda x: svd_formula(x, proper=True), a, weight)).all()
    expected = 0.5 * (weight - weight.mT)
    assert_near(grad_of(polar, a, weight), expected, 1e-15)


@each_mode
def test_polar_gradient_is_always_finite(*, proper: bool) -> None:
    a = degenerate(4200)
    assert len(a) > 100_000
    gradient = grad_of(lambda x: polar(x, proper=proper), a, torch.randn_like(a))
    assert int((~torch.isfinite(gradient)).sum()) == 0


def test_polar_refuses_a_second_derivative_it_does_not_have() -> None:
    a = well_conditioned(2, torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(polar(a).pow(3).sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "negative"])
@pytest.mark.parametrize("condition", [1.0, 20.0, 1e3])
def test_newton_agrees_with_polar(
    sign: int, condition: float, dtype: torch.dtype, tol: float
) -> None:
    values = torch.cat((1 + (condition - 1) * torch.rand(2000, 2), torch.ones(2000, 1)), dim=-1)
    values = values * 10 ** (2 * torch.randn(2000, 1))
    a = sign * with_singular_values(values.to(dtype))
    assert_near(polar_newton(a), polar(a, proper=False), condition * tol)


def test_newton_is_orthogonal_where_rank_is_lost(dtype: torch.dtype, tol: float) -> None:
    v = polar_newton(degenerate(4200).to(dtype))
    assert_near(v.mT @ v, torch.eye(3, dtype=dtype).expand_as(v), tol)


def test_newton_gradient_agrees_with_polar() -> None:
    a = well_conditioned(COUNT, torch.float64)
    weight = torch.randn_like(a)
    assert_near(grad_of(polar_newton, a, weight), grad_of(polar, a, weight), 1e-12)


@each_sampler
def test_penalty_of_a_rotation_is_zero(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R = rotations(COUNT, dtype, sampler)
    assert_near(non_degeneracy_penalty(R), torch.zeros(COUNT, dtype=dtype), tol**2)


def test_penalty_is_the_distance_of_singular_values_from_one(
    dtype: torch.dtype, tol: float
) -> None:
    values = torch.rand(COUNT, 3, dtype=dtype)
    penalty = non_degeneracy_penalty(with_singular_values(values))
    assert_near(penalty, (values.square() - 1).square().sum(-1), tol)


@each_sampler
def test_penalty_does_not_see_a_left_rotation(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R, a = rotations(COUNT, dtype, sampler), well_conditioned(COUNT, dtype)
    before, after = non_degeneracy_penalty(a), non_degeneracy_penalty(R @ a)
    assert_near(after / before, torch.ones_like(before), tol)


def test_penalty_gradient_is_finite() -> None:
    a = degenerate(COUNT)
    weight = torch.ones(len(a))
    assert torch.isfinite(grad_of(non_degeneracy_penalty, a, weight)).all()


def test_gram_schmidt_frame_is_a_rotation(dtype: torch.dtype, tol: float) -> None:
    first, second = unit_vectors(COUNT, dtype), torch.randn(COUNT, 3, dtype=dtype)
    second = second + 2 * torch.linalg.cross(first, second)
    frame = gram_schmidt(first, second)
    assert_rotations(frame, 10 * tol)
    assert_near(frame[..., 0], first, tol)
    assert ((frame[..., 1] * second).sum(-1) > 0).all()


@each_sampler
def test_gram_schmidt_turns_with_its_vectors(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R = rotations(COUNT, dtype, sampler)
    first, second = unit_vectors(COUNT, dtype), torch.randn(COUNT, 3, dtype=dtype)
    second = second + 2 * torch.linalg.cross(first, second)
    turned = gram_schmidt(so3.rotate(R, first), so3.rotate(R, second))
    assert_near(turned, R @ gram_schmidt(first, second), 10 * tol)


@pytest.mark.parametrize("factor", [-1.0, 0.0, 1.0, 1 + 1e-7, 100.0])
def test_gram_schmidt_of_collinear_vectors_stays_finite(factor: float, dtype: torch.dtype) -> None:
    first = torch.randn(COUNT, 3, dtype=dtype)
    first[0] = 0
    first.requires_grad_()
    frame = gram_schmidt(first, factor * first)
    (gradient,) = torch.autograd.grad((frame * torch.randn_like(frame)).sum(), first)
    assert torch.isfinite(frame).all()
    assert torch.isfinite(gradient).all()


def test_gradcheck_gram_schmidt() -> None:
    first, second = torch.randn(2, 4, 3, dtype=torch.float64)
    inputs = first.requires_grad_(), second.requires_grad_()
    assert torch.autograd.gradcheck(gram_schmidt, inputs)
