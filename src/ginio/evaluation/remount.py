"""One flight as recorded and with its sensor remounted, tracked by several networks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.interfaces import Symmetry
from ginio.core.measurement import Quantity
from ginio.core.recording import Recording
from ginio.data.corpus import Corpus, decimate
from ginio.data.windows import WindowSet
from ginio.evaluation.odometry import Odometry, Question, run_odometry
from ginio.evaluation.protocols import ProtocolConfig, path_errors, uncertainty_errors
from ginio.geometry import alignment, so3
from ginio.metrics import trajectory
from ginio.runtime.checkpoint import Run

RECORDED_HZ = 100.0
QUARTER_TURN = math.pi / 2


@dataclass(frozen=True, slots=True)
class Mounting:
    """A way to mount the sensor, against the one that recorded."""

    name: str
    description: str
    R_ms: Float[Tensor, "3 3"]


@dataclass(frozen=True, slots=True)
class Track:
    """What a network made of a flight, beside the truth at the same stamps."""

    odometry: Odometry
    p_true_w: Float64[Tensor, "time 3"]
    v_true_w: Float[Tensor, "time 3"]
    errors: Mapping[str, float]
    """By the names of the evaluation protocol, such as ``ate_se3``."""

    def position_error(self) -> Float64[Tensor, " time"]:
        """Distance from the truth, first points made one, nothing else aligned."""
        aligned = alignment.align_origin(self.p_true_w, self.odometry.p_w)(self.odometry.p_w)
        return (aligned - self.p_true_w).norm(dim=-1)

    def velocity_error_w(self) -> Float[Tensor, "time 3"]:
        """Predicted less true velocity."""
        return self.odometry.measurement.residual(self.v_true_w)

    def velocity_std_w(self) -> Float[Tensor, "time 3"]:
        """Standard deviation that Σ claims along each axis of the world."""
        return self.odometry.measurement.covariance.matrix().diagonal(dim1=-2, dim2=-1).sqrt()

    def within_2_std(self) -> float:
        """Part of the velocity errors, axis by axis, that Σ says should be 95.4 %."""
        inside = self.velocity_error_w().abs() <= 2 * self.velocity_std_w()
        return float(inside.double().mean())

    def standing_still(self) -> float:
        """``ate_se3`` of a path that never leaves its first point."""
        return float(trajectory.ate_se3(self.p_true_w, self.p_true_w[:1].expand_as(self.p_true_w)))


@dataclass(frozen=True, slots=True)
class Row:
    """All networks on one mounting, by their labels."""

    mounting: Mounting
    tracks: Mapping[str, Track]

    @property
    def standing_still(self) -> float:
        """Error of the path that never moves, the same for every mounting."""
        return next(iter(self.tracks.values())).standing_still()


def mountings(*, seed: int) -> tuple[Mounting, ...]:
    """As recorded, gravity along each of the sensor's other axes, and one random rotation.

    On a sensor mounted flat, specific force at rest lies along z.
    """
    generator = torch.Generator().manual_seed(seed)
    random = so3.random(1, generator=generator)[0]
    angle_deg = math.degrees(float(so3.geodesic_angle(torch.eye(3), random)))
    turns = torch.tensor([[0.0, QUARTER_TURN, 0.0], [-QUARTER_TURN, 0.0, 0.0]])
    x_up, y_up = so3.exp(turns)
    return (
        Mounting(
            "as recorded", "the sensor as it was flown, gravity along its z axis", torch.eye(3)
        ),
        Mounting("gravity along x", "the sensor turned by 90° about its y axis", x_up),
        Mounting("gravity along y", "the sensor turned by 90° about its x axis", y_up),
        Mounting(
            "random rotation", f"the sensor turned by {angle_deg:.0f}° about some axis", random
        ),
    )


def track(run: Run, flight: Recording, R_ms: Float[Tensor, "3 3"]) -> Track:
    """Track a flight with the sensor turned by ``R_ms``: velocities only, true attitude."""
    card = run.card
    if card.quantity is not Quantity.VELOCITY:
        raise ValueError(f"tracking needs a network of velocity; found {card.quantity.value}")
    factor = max(1, round(RECORDED_HZ / card.rate_hz))
    corpus = Corpus.join(decimate([flight.remounted(R_ms)], factor))
    windows = WindowSet(corpus, card.network.window, card.quantity)
    last = torch.arange(0, len(corpus), ProtocolConfig().stride)
    question = Question(windows=windows, last=last)
    odometry = run_odometry(run.frontend(), question, card.representation)
    v_true_w = corpus.v_w[last]
    errors = path_errors(corpus, last, odometry)
    errors |= uncertainty_errors(v_true_w, odometry.measurement)
    return Track(odometry, corpus.p_w[last].double(), v_true_w, errors)


def describe(run: Run) -> str:
    """What a network promises when the sensor turns, after its name in a sentence."""
    config = run.card.network
    if config.mean_symmetry is Symmetry.NONE:
        return "is an ordinary network: nothing in it makes its answer turn with the sensor"
    if config.mean_symmetry is not Symmetry.SO3:
        return "is built so that its answer turns with the sensor about the vertical only"
    if config.covariance_symmetry is not Symmetry.SO3:
        return "is built so that its answer, though not its uncertainty, turns with the sensor"
    return "is built so that its answer and its uncertainty turn with the sensor"


def reading(rows: Sequence[Row], *, label: str, baseline: str) -> str:
    """The table in one sentence; the first row is the flight as recorded."""
    own = [row.tracks[label].errors["ate_se3"] for row in rows]
    other = [row.tracks[baseline].errors["ate_se3"] for row in rows]
    changed = max(abs(error - own[0]) for error in own[1:])
    low, high = _length(min(other[1:])), _length(max(other[1:]))
    turned = high if low == high else f"between {low} and {high}"
    return (
        f"Turning the sensor changes {label}'s error by {_length(changed)} at most; "
        f"{baseline}'s goes from {_length(other[0])} to {turned}, where standing still costs "
        f"{_length(rows[0].standing_still)}."
    )


def _length(metres: float) -> str:
    """About two digits, in the unit that suits, which stays on their line."""
    unit, value = "m", metres
    if metres < 1e-4:
        unit, value = "µm", 1e6 * metres
    elif metres < 0.1:
        unit, value = "mm", 1e3 * metres
    return f"{value:.{0 if value >= 10 else 1 if value >= 1 else 2}f}\u00a0{unit}"
