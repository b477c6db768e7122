"""The coordinates in which a filter writes its errors.

The error of an attitude is always on the right, ``R = R̂ exp(θ)``. Charts differ in one thing: how
the error of a velocity or a position is written beside it. Everything else, from the propagation
to the update, is written once and asks the chart. Derivation: docs/derivations/filters.md.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from ginio.geometry import so3
from ginio.geometry.so3 import Matrix3, Vector


@runtime_checkable
class Chart(Protocol):
    """How the error of a vector beside an attitude is written."""

    def axes(self, R_ws: Matrix3) -> Matrix3:
        """Takes a small error of a vector to the world; errors of attitude are zero here."""
        ...

    def to_world(self, R_ws: Matrix3, jacobian: Matrix3, error: Vector) -> Vector:
        """Error of a vector in the world, beside a large error θ with this left Jacobian."""
        ...

    def from_world(self, R_ws: Matrix3, theta: Vector, error_w: Vector) -> Vector:
        """Inverse of `to_world`."""
        ...


@dataclass(frozen=True, slots=True)
class WorldChart:
    """Errors of vectors are differences in the world: those of the SCEKF."""

    def axes(self, R_ws: Matrix3) -> Matrix3:
        """The identity."""
        return so3.identity_like(R_ws[..., 0])

    def to_world(self, R_ws: Matrix3, jacobian: Matrix3, error: Vector) -> Vector:  # noqa: ARG002 - a chart
        """The same."""
        return error

    def from_world(self, R_ws: Matrix3, theta: Vector, error_w: Vector) -> Vector:  # noqa: ARG002 - a chart
        """The same."""
        return error_w


@dataclass(frozen=True, slots=True)
class InvariantChart:
    """Left-invariant errors: ``ξ = Log(X̂⁻¹ X)`` on SE_2(3), and on SE(3) for a clone.

    `retract` then is ``X̂⁺ = X̂ Exp(ξ)``, which for attitude, velocity and position reads
    ``R̂ exp(θ)``, ``v̂ + R̂ J(θ) ξ_v``, ``p̂ + R̂ J(θ) ξ_p`` with the left Jacobian J (Eq. 13).
    """

    def axes(self, R_ws: Matrix3) -> Matrix3:
        """The attitude itself: errors are in the sensor frame."""
        return R_ws

    def to_world(self, R_ws: Matrix3, jacobian: Matrix3, error: Vector) -> Vector:
        """``R̂ J(θ) ξ``."""
        return so3.rotate(R_ws @ jacobian, error)

    def from_world(self, R_ws: Matrix3, theta: Vector, error_w: Vector) -> Vector:
        """``J(θ)⁻¹ R̂ᵀ`` of a difference in the world."""
        return so3.rotate(so3.left_jacobian_inverse(theta) @ R_ws.mT, error_w)


def turned_rows(
    blocks: Float[Tensor, "*batch block 3 3"], matrix: Float[Tensor, "*batch n m"]
) -> Float[Tensor, "*batch n m"]:
    """A matrix times one with blocks of three along its diagonal on the left."""
    return (blocks @ matrix.unflatten(-2, (-1, 3))).flatten(-3, -2)


def congruent(
    blocks: Float[Tensor, "*batch block 3 3"], matrix: Float[Tensor, "*batch n n"]
) -> Float[Tensor, "*batch n n"]:
    """``D M Dᵀ`` with a symmetric M and blocks of three along the diagonal of D."""
    return turned_rows(blocks, turned_rows(blocks, matrix).mT)
