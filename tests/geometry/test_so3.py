import math

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.spatial.transform import Rotation
from strategies import (
    Sampler,
    assert_near,
    assert_rotations,
    each_sampler,
    near_half_turn,
    near_identity,
    rotations,
    scipy_matrices,
    uniform,
    unit_vectors,
)
from torch import Tensor

from ginio.geometry import so3

COUNT = 1000


def gap(phi: Tensor, expected: Tensor) -> Tensor:
    """Distance of two rotation vectors, where φ and its wrap by a full turn are one."""
    length = expected.norm(dim=-1, keepdim=True)
    wrapped = expected * (1 - 2 * math.pi / length)
    return torch.minimum((phi - expected).norm(dim=-1), (phi - wrapped).norm(dim=-1))


def gap_up_to_sign(q: Tensor, expected: Tensor) -> Tensor:
    return torch.minimum((q - expected).norm(dim=-1), (q + expected).norm(dim=-1))


def test_hat_is_the_cross_product(dtype: torch.dtype, tol: float) -> None:
    a, b = torch.randn(2, COUNT, 3, dtype=dtype)
    assert_near(so3.rotate(so3.hat(a), b), torch.linalg.cross(a, b), tol)


def test_vee_inverts_hat(dtype: torch.dtype) -> None:
    v = torch.randn(COUNT, 3, dtype=dtype)
    assert_near(so3.vee(so3.hat(v)), v, 0)


def test_vee_does_not_see_the_symmetric_part(dtype: torch.dtype, tol: float) -> None:
    v, a = torch.randn(COUNT, 3, dtype=dtype), torch.randn(COUNT, 3, 3, dtype=dtype)
    assert_near(so3.vee(so3.hat(v) + a + a.mT), v, tol)


@each_sampler
def test_exp_agrees_with_scipy(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    phi = sampler(COUNT, dtype)
    assert_near(so3.exp(phi), scipy_matrices(phi), tol)


@each_sampler
def test_exp_is_the_matrix_exponential(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    phi = sampler(COUNT, dtype)
    assert_near(so3.exp(phi), torch.linalg.matrix_exp(so3.hat(phi)), tol)


@each_sampler
def test_log_inverts_exp(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    phi = sampler(COUNT, dtype)
    assert (gap(so3.log(so3.exp(phi)), phi) / phi.norm(dim=-1)).max() < tol


@each_sampler
def test_exp_inverts_log(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R = rotations(COUNT, dtype, sampler)
    assert_near(so3.exp(so3.log(R)), R, tol)


@each_sampler
def test_log_agrees_with_scipy(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R = rotations(COUNT, dtype, sampler)
    expected = torch.from_numpy(Rotation.from_matrix(R.double().numpy()).as_rotvec())
    assert gap(so3.log(R).double(), expected).max() < tol


def test_log_of_an_exact_half_turn_lies_on_its_axis(dtype: torch.dtype, tol: float) -> None:
    axis = torch.cat((torch.eye(3, dtype=dtype), unit_vectors(COUNT, dtype)))
    R = 2 * axis.unsqueeze(-1) * axis.unsqueeze(-2) - torch.eye(3, dtype=dtype)
    phi = so3.log(R)
    assert_near(phi.norm(dim=-1), torch.full((), math.pi, dtype=dtype), tol)
    assert_near(torch.linalg.cross(phi, axis), torch.zeros((), dtype=dtype), tol)


def test_series_and_closed_forms_meet(dtype: torch.dtype, tol: float) -> None:
    length = torch.logspace(-9, math.log10(3.1), 2000, dtype=torch.float64).unsqueeze(-1)
    phi = (length * unit_vectors(len(length), torch.float64)).to(dtype)
    R = scipy_matrices(phi)
    assert_near(so3.exp(phi), R, tol)
    assert ((so3.log(R) - phi).norm(dim=-1) / phi.norm(dim=-1)).max() < tol
    product = so3.left_jacobian_inverse(phi) @ so3.left_jacobian(phi)
    assert_near(product, torch.eye(3, dtype=dtype), tol)


def test_log_of_identity_is_zero(dtype: torch.dtype) -> None:
    assert_near(so3.log(torch.eye(3, dtype=dtype)), torch.zeros(3, dtype=dtype), 0)


@pytest.mark.parametrize(
    ("jacobian", "left"), [(so3.left_jacobian, 1), (so3.right_jacobian, 0)], ids=["left", "right"]
)
@each_sampler
def test_jacobian_is_the_derivative_of_exp(
    sampler: Sampler, jacobian: Sampler, left: int, dtype: torch.dtype, tol: float
) -> None:
    for phi in sampler(8, dtype):
        back = scipy_matrices(-phi)

        def increment(delta: Tensor, phi: Tensor = phi, back: Tensor = back) -> Tensor:
            moved = torch.linalg.matrix_exp(so3.hat(phi + delta))
            return so3.vee(moved @ back if left else back @ moved)

        derivative = torch.func.jacfwd(increment)(torch.zeros_like(phi))
        assert_near(jacobian(phi), derivative, tol)


@each_sampler
def test_jacobian_inverses_invert(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    phi, eye = sampler(COUNT, dtype), torch.eye(3, dtype=dtype)
    assert_near(so3.left_jacobian_inverse(phi) @ so3.left_jacobian(phi), eye, tol)
    assert_near(so3.right_jacobian(phi) @ so3.right_jacobian_inverse(phi), eye, tol)


@each_sampler
def test_local_inverts_retract(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R, delta = rotations(COUNT, dtype), sampler(COUNT, dtype)
    assert gap(so3.local(R, so3.retract(R, delta)), delta).max() < tol


@each_sampler
def test_retract_inverts_local(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    R, step = rotations(COUNT, dtype), rotations(COUNT, dtype, sampler)
    assert_near(so3.retract(R, so3.local(R, R @ step)), R @ step, tol)


def test_retract_perturbs_on_the_right(dtype: torch.dtype, tol: float) -> None:
    R, delta = rotations(COUNT, dtype), uniform(COUNT, dtype)
    assert_near(so3.retract(R, delta), R @ scipy_matrices(delta), tol)


@each_sampler
def test_geodesic_angle_agrees_with_scipy(sampler: Sampler, tol: float, dtype: torch.dtype) -> None:
    phi = sampler(COUNT, dtype)
    R = rotations(COUNT, torch.float64)
    R_other = R @ scipy_matrices(phi.double())
    expected = torch.from_numpy(Rotation.from_rotvec(phi.double().numpy()).magnitude())
    angle = so3.geodesic_angle(R.to(dtype), R_other.to(dtype))
    assert_near(angle, expected.to(dtype), tol)


@each_sampler
def test_geodesic_angle_from_identity_is_relatively_exact(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    phi = sampler(COUNT, dtype)
    expected = phi.norm(dim=-1)
    angle = so3.geodesic_angle(torch.eye(3, dtype=dtype).expand(COUNT, 3, 3), scipy_matrices(phi))
    assert_near(angle / expected, torch.ones_like(expected), tol)


@each_sampler
def test_quaternion_of_a_matrix_agrees_with_scipy(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    R = rotations(COUNT, dtype, sampler)
    expected = torch.from_numpy(Rotation.from_matrix(R.double().numpy()).as_quat()).to(dtype)
    assert gap_up_to_sign(so3.quaternion_xyzw_from_matrix(R), expected).max() < tol
    q_wxyz = so3.quaternion_wxyz_from_matrix(R)
    assert gap_up_to_sign(q_wxyz, expected[:, [3, 0, 1, 2]]).max() < tol
    assert (q_wxyz[:, 0] >= 0).all()


@each_sampler
def test_matrix_of_a_quaternion_agrees_with_scipy(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    rotation = Rotation.from_rotvec(sampler(COUNT, torch.float64).numpy())
    q_xyzw = torch.from_numpy(rotation.as_quat()).to(dtype)
    expected = torch.from_numpy(rotation.as_matrix()).to(dtype)
    assert_near(so3.matrix_from_quaternion_xyzw(3 * q_xyzw), expected, tol)
    assert_near(so3.matrix_from_quaternion_wxyz(-q_xyzw[:, [3, 0, 1, 2]]), expected, tol)


def test_about_z_agrees_with_scipy(dtype: torch.dtype, tol: float) -> None:
    yaw = torch.linspace(-4, 4, 41, dtype=dtype)
    phi = torch.stack((0 * yaw, 0 * yaw, yaw), dim=-1)
    assert_near(so3.about_z(yaw), scipy_matrices(phi), tol)


def test_random_rotations_are_rotations(dtype: torch.dtype, tol: float) -> None:
    assert_rotations(so3.random(COUNT, dtype=dtype), tol)


def test_random_rotations_are_uniform() -> None:
    count = 20_000
    R = so3.random(count, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    five_sigma = 5 / math.sqrt(3 * count)
    assert R.mean(0).abs().max() < five_sigma
    angle = Rotation.from_matrix(R.numpy()).magnitude()
    test = scipy.stats.kstest(angle, lambda a: (a - np.sin(a)) / math.pi)
    assert test.pvalue > 0.01


def test_random_rotations_repeat_with_their_generator() -> None:
    first, again = (so3.random(5, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)


@pytest.mark.parametrize("angle", [1e-3, 1.0, 3.0, math.pi])
def test_random_with_angle_has_the_angle(angle: float, dtype: torch.dtype, tol: float) -> None:
    R = so3.random_with_angle(COUNT, angle, dtype=dtype)
    assert_rotations(R, tol)
    magnitude = torch.from_numpy(Rotation.from_matrix(R.double().numpy()).magnitude())
    assert_near(magnitude, torch.tensor(angle, dtype=torch.float64), tol)


def test_gradient_of_exp_at_identity_is_hat(dtype: torch.dtype) -> None:
    zero, eye = torch.zeros(3, dtype=dtype), torch.eye(3, dtype=dtype)
    jacobian = torch.autograd.functional.jacobian(so3.exp, zero)
    assert_near(jacobian.movedim(-1, 0), so3.hat(eye), 0)


def test_gradient_of_log_at_identity_is_vee(dtype: torch.dtype, tol: float) -> None:
    eye = torch.eye(3, dtype=dtype)
    jacobian = torch.autograd.functional.jacobian(so3.log, eye)
    along = torch.einsum("kij,nij->nk", jacobian, so3.hat(eye))
    assert_near(along, eye, tol)


@each_sampler
def test_gradients_stay_finite(sampler: Sampler, dtype: torch.dtype) -> None:
    phi = sampler(COUNT, dtype).requires_grad_()
    R = rotations(COUNT, dtype, sampler).requires_grad_()
    so3.exp(phi).square().sum().backward()
    (so3.log(R) * torch.randn(COUNT, 3, dtype=dtype)).sum().backward()
    assert torch.isfinite(phi.grad).all()
    assert torch.isfinite(R.grad).all()


def test_gradcheck_exp() -> None:
    phi = torch.cat((uniform(6, torch.float64), near_identity(2, torch.float64)))
    phi = torch.cat((phi, near_half_turn(8, torch.float64), torch.zeros(1, 3)))
    assert torch.autograd.gradcheck(so3.exp, phi.requires_grad_())


def test_gradcheck_log() -> None:
    phi = torch.cat((uniform(6, torch.float64), near_identity(2, torch.float64)))
    phi = torch.cat((phi, 0.999 * near_half_turn(8, torch.float64), torch.zeros(1, 3)))
    assert torch.autograd.gradcheck(so3.log, scipy_matrices(phi).requires_grad_())
