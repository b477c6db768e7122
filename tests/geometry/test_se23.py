import torch
from strategies import Sampler, assert_near, each_sampler, rotations

from ginio.geometry import se23, so3

COUNT = 300


def twists(sampler: Sampler, dtype: torch.dtype) -> torch.Tensor:
    return torch.cat((sampler(COUNT, dtype), torch.randn(COUNT, 6, dtype=dtype)), dim=-1)


def poses(dtype: torch.dtype) -> torch.Tensor:
    return se23.pack(rotations(COUNT, dtype), *torch.randn(2, COUNT, 3, dtype=dtype))


def wedge(xi: torch.Tensor) -> torch.Tensor:
    algebra = torch.zeros(len(xi), 5, 5, dtype=xi.dtype)
    algebra[:, :3, :3] = so3.hat(xi[:, :3])
    algebra[:, :3, 3], algebra[:, :3, 4] = xi[:, 3:6], xi[:, 6:]
    return algebra


def test_unpack_inverts_pack(dtype: torch.dtype) -> None:
    parts = rotations(COUNT, dtype), *torch.randn(2, COUNT, 3, dtype=dtype)
    for part, expected in zip(se23.unpack(se23.pack(*parts)), parts, strict=True):
        assert_near(part, expected, 0)


@each_sampler
def test_exp_is_the_matrix_exponential(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    xi = twists(sampler, dtype)
    assert_near(se23.exp(xi), torch.linalg.matrix_exp(wedge(xi)), tol)


@each_sampler
def test_exp_inverts_log(sampler: Sampler, dtype: torch.dtype, tol: float) -> None:
    x = se23.pack(rotations(COUNT, dtype, sampler), *torch.randn(2, COUNT, 3, dtype=dtype))
    assert_near(se23.exp(se23.log(x)), x, tol)


@each_sampler
def test_log_inverts_exp_short_of_half_turns(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    xi = twists(lambda count, kind: 0.95 * sampler(count, kind), dtype)
    assert_near(se23.log(se23.exp(xi)), xi, 10 * tol)


def test_inverse_is_the_matrix_inverse(dtype: torch.dtype, tol: float) -> None:
    x = poses(dtype)
    assert_near(se23.inverse(x), torch.linalg.inv(x), tol)
    assert_near(se23.compose(x, se23.inverse(x)), torch.eye(5, dtype=dtype), tol)


@each_sampler
def test_adjoint_moves_a_twist_to_the_other_side(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    x, xi = poses(dtype), twists(sampler, dtype)
    moved = (se23.adjoint(x) @ xi.unsqueeze(-1)).squeeze(-1)
    assert_near(x @ se23.exp(xi) @ torch.linalg.inv(x), se23.exp(moved), 10 * tol)


def test_adjoint_is_a_homomorphism(dtype: torch.dtype, tol: float) -> None:
    x, y = poses(dtype), poses(dtype)
    assert_near(se23.adjoint(x @ y), se23.adjoint(x) @ se23.adjoint(y), 10 * tol)


@each_sampler
def test_local_and_retract_invert_each_other(
    sampler: Sampler, dtype: torch.dtype, tol: float
) -> None:
    x, delta = poses(dtype), twists(lambda count, kind: 0.95 * sampler(count, kind), dtype)
    y = se23.retract(x, delta)
    assert_near(se23.local(x, y), delta, 10 * tol)
    assert_near(se23.retract(x, se23.local(x, y)), y, 10 * tol)


def test_local_does_not_see_a_change_of_world(dtype: torch.dtype, tol: float) -> None:
    x, world = poses(dtype), poses(dtype)
    y = se23.retract(x, 0.3 * torch.randn(COUNT, 9, dtype=dtype))
    assert_near(se23.local(world @ x, world @ y), se23.local(x, y), 10 * tol)


def test_gradient_at_identity_is_finite(dtype: torch.dtype) -> None:
    xi = torch.zeros(9, dtype=dtype, requires_grad=True)
    (grad,) = torch.autograd.grad(se23.log(se23.exp(xi)).sum(), xi)
    assert_near(grad, torch.ones_like(grad), 1e-6)


def test_gradcheck_exp_and_log() -> None:
    xi = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(se23.exp, xi)
    assert torch.autograd.gradcheck(lambda x: se23.log(se23.exp(x)), xi)
