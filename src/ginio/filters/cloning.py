"""A Kalman filter of inertial motion with clones of past poses, in the chart of one's choice."""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.measurement import Measurement
from ginio.filters import adaptation, gaussian, observation
from ginio.filters import belief as beliefs
from ginio.filters.adaptation import Adaptation
from ginio.filters.belief import (
    CLONE,
    CORE,
    EMPTY,
    MOTION,
    NETWORK,
    POSITION,
    THETA,
    Belief,
    Clones,
    Estimate,
    Health,
)
from ginio.filters.chart import Chart, congruent, turned_rows
from ginio.filters.gaussian import Innovation
from ginio.filters.network_error import NetworkError
from ginio.filters.observation import Frame, Names, Span
from ginio.filters.start import Start
from ginio.filters.strapdown import ImuNoise, Increment, Signal, State, advance, integrate
from ginio.geometry import so3
from ginio.geometry.frames import GRAVITY_MPS2


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """What both filters share."""

    noise: ImuNoise = field(default_factory=ImuNoise)
    network: NetworkError = field(default_factory=NetworkError)
    adaptation: Adaptation | None = field(default_factory=Adaptation)
    clones: int = 21
    """Slots for poses; a new pose takes the place of the oldest."""
    gate_probability: float = 0.99
    """Of an honest measurement to pass; with 3 dof 0.99 is a threshold of 11.345."""
    settled_tilt: float = 0.05
    """Standard deviation of the vertical, radians, below which a run is no longer initialising."""
    gravity_w: tuple[float, float, float] = (0.0, 0.0, -GRAVITY_MPS2)

    def __post_init__(self) -> None:
        if self.clones < 0:
            raise ValueError(f"clones must not be negative; found {self.clones}")
        gaussian.gate_threshold(self.gate_probability)


class CloningFilter:
    """Beliefs in, beliefs out; the filter itself holds nothing but its configuration."""

    def __init__(self, config: FilterConfig, chart: Chart) -> None:
        self.config = config
        self.chart = chart
        self.threshold = gaussian.gate_threshold(config.gate_probability)

    def start(self, start: Start) -> Belief:
        """A belief without clones."""
        state = start.state
        batch = state.R_ws.shape[:-2]
        like = {"dtype": torch.float64, "device": state.R_ws.device}
        n = CORE + CLONE * self.config.clones
        axes = beliefs.usual_axes(self.chart, state.R_ws).mT
        P = torch.zeros(*batch, n, n, **like)
        P[..., :MOTION, :MOTION] = congruent(axes, start.covariance)
        P[..., NETWORK, NETWORK] = self.config.network.stationary * torch.eye(3, **like)
        belief = Belief(
            t=start.t,
            state=state,
            network_error=torch.zeros(*batch, 3, **like),
            clones=_empty(start.t, self.config.clones),
            P=P,
            health=_healthy(start.t),
        )
        is_settled = belief.tilt_std < self.config.settled_tilt
        return replace(belief, health=replace(belief.health, is_settled=is_settled))

    def propagate(  # noqa: PLR0913 - samples, what is known of them, and what to do at their end
        self,
        belief: Belief,
        acc_s: Signal,
        gyr_s: Signal,
        dt: Float[Tensor, "*#batch time"],
        extra_std: Float[Tensor, "*batch time 6"] | None = None,
        *,
        name: Names | None = None,
        donate: bool = False,
    ) -> Belief:
        """The belief after a chunk of raw samples, one sample or many.

        Args:
            belief: before the chunk.
            acc_s: specific force, with its bias.
            gyr_s: angular rate, with its bias.
            dt: seconds that each sample stands for; a sample of zero seconds counts for nothing.
            extra_std: further standard deviation of force and rate where a sample is in doubt.
            name: of a clone to make at the end, as `clone` would, at half the cost.
            donate: whether the belief is given up, and its covariance may be written into. Of many
                runs at once, new memory for it costs as much as the arithmetic.
        """
        state = belief.state
        increment = integrate(
            acc_s - state.bias_acc_s.unsqueeze(-2),
            gyr_s - state.bias_gyr_s.unsqueeze(-2),
            dt,
            self.config.noise,
            extra_std,
        )
        after = advance(state, increment, state.p_w.new_tensor(self.config.gravity_w))
        memory = self.config.network.memory(increment.duration)
        F, Q = self._transition(state, after, increment)
        moved = replace(
            belief,
            t=belief.t + increment.duration,
            state=after,
            network_error=memory.unsqueeze(-1) * belief.network_error,
            P=self._propagated(belief.P if donate else belief.P.clone(), F, Q, memory),
        )
        return moved if name is None else self._remembering(moved, name)

    def _transition(
        self, before: State, after: State, increment: Increment
    ) -> tuple[Float64[Tensor, "*batch 15 15"], Float64[Tensor, "*batch 15 15"]]:
        """F and Q of a chunk in the chart; the increment has them in the frame at its start."""
        into = before.R_ws.mT @ self.chart.axes(before.R_ws)
        out = self.chart.axes(after.R_ws).mT @ before.R_ws
        eye = so3.identity_like(before.p_w)
        begin = torch.stack((eye, into, into, eye, eye), dim=-3)
        end = torch.stack((increment.R_se.mT, out, out, eye, eye), dim=-3)
        F = turned_rows(begin.mT, turned_rows(end, increment.transition).mT).mT
        return F, congruent(end, increment.noise)

    def _propagated(
        self, P: Tensor, F: Tensor, Q: Tensor, memory: Float[Tensor, "*batch"]
    ) -> Tensor:
        """``F P Fᵀ + Q`` in place; F leaves the clones alone and lets the network's error fade."""
        eye = torch.eye(3, dtype=P.dtype, device=P.device)
        fade = memory[..., None, None] * eye
        F_core = P.new_zeros(*P.shape[:-2], CORE, CORE)
        F_core[..., :MOTION, :MOTION] = F
        F_core[..., NETWORK, NETWORK] = fade
        rows = F_core @ P[..., :CORE, :]
        core = rows[..., :CORE] @ F_core.mT
        core[..., :MOTION, :MOTION] += Q
        core[..., NETWORK, NETWORK] += self.config.network.stationary * (eye - fade.square())
        P[..., :CORE, :CORE] = 0.5 * (core + core.mT)
        P[..., :CORE, CORE:] = rows[..., CORE:]
        P[..., CORE:, :CORE] = rows[..., CORE:].mT
        return P

    def clone(self, belief: Belief, name: Names) -> Belief:
        """Remember the present pose under a name of its own; the oldest clone is forgotten."""
        return self._remembering(replace(belief, P=belief.P.clone()), name)

    def _remembering(self, belief: Belief, name: Names) -> Belief:
        """`clone` of a belief whose covariance nobody else has seen, and may be written into."""
        if not self.config.clones:
            raise ValueError("a filter with no slots for clones was asked for one")
        slot = belief.cloned % self.config.clones
        clones, state, axis = belief.clones, belief.state, belief.t.ndim
        index = torch.tensor([slot], device=belief.t.device)
        _write_clone(belief.P, CORE + CLONE * slot)
        return replace(
            belief,
            clones=Clones(
                R_ws=_put(clones.R_ws, index, state.R_ws, axis),
                p_w=_put(clones.p_w, index, state.p_w, axis),
                name=_put(clones.name, index, observation.named(belief, name), axis),
                t=_put(clones.t, index, belief.t, axis),
                is_used=_put(
                    clones.is_used, index, torch.zeros_like(belief.t, dtype=torch.bool), axis
                ),
            ),
            cloned=belief.cloned + 1,
        )

    def forget_clones(self, belief: Belief, mask: Tensor | None = None) -> Belief:
        """The belief without its clones, in the runs of a mask: after a gap they join nothing."""
        P = belief.P.clone()
        P[..., CORE:, :] = 0
        P[..., :, CORE:] = 0
        empty = _empty(belief.t, self.config.clones)
        without = replace(belief, P=P, clones=empty)
        return without if mask is None else beliefs.choose(mask, without, belief)

    def update(
        self,
        belief: Belief,
        measurement: Measurement,
        *,
        end: Names,
        begin: Names = EMPTY,
        frame: Frame = Frame.LAST,
        donate: bool = False,
    ) -> tuple[Belief, Innovation]:
        """The belief after a network's measurement (Eq. 12), and what it said that was new.

        Args:
            belief: now. A velocity is that of now, a displacement may be of any two clones.
            measurement: in its frame; what is not finite is skipped and counted.
            end: name of the clone at the window's last sample; of a velocity, any rising number.
                A window whose end has been applied before is skipped.
            begin: name of the clone at the window's first sample.
            frame: of the measurement.
            donate: whether the belief is given up, as in `propagate`.
        """
        window = observation.span(belief, measurement.quantity, begin, end)
        noise = self.config.network.split(measurement.covariance, belief.health.log_inflation)
        expected = observation.predict(
            self.chart, belief, measurement.quantity, frame, window, noise.root
        )
        residual = measurement.mean.to(belief.t) - expected.value
        bounded = measurement.covariance.log_std.to(belief.t) < torch.inf
        usable = window.is_new & expected.exists & bounded.all(-1)
        found = gaussian.gain(belief.P, expected.H, residual, noise.white, usable, self.threshold)
        return self._concluded(belief, found, window, belief.P if donate else belief.P.clone())

    def _concluded(
        self, belief: Belief, found: gaussian.Gain, window: Span, P: Tensor
    ) -> tuple[Belief, Innovation]:
        innovation, config = found.innovation, self.config.adaptation
        factor = torch.ones_like(belief.t)
        if config is not None:
            recovering = adaptation.stalled(config, belief.health, belief.t, innovation)
            factor = adaptation.recovery_factor(config, innovation, recovering)
        accepted = innovation.accepted | (factor > 1)
        delta = gaussian.correct(P, found, accepted)
        health = adaptation.recorded(config, belief.health, belief.t, innovation, factor)
        if bool((health.log_growth > 0).any()):
            _grow(P, health.log_growth)
        moved = replace(beliefs.retract(self.chart, belief, delta), P=P, health=health)
        moved = self._settled(moved, accepted)
        return window.marked(moved, innovation.usable), replace(innovation, accepted=accepted)

    def _settled(self, belief: Belief, accepted: Tensor) -> Belief:
        """Runs are settled once the vertical is known and filter and network agree about it.

        A level that was guessed wrong is corrected by large innovations, through which the filter
        becomes certain sooner than right; so agreement counts only after as many updates as the
        mean of innovations remembers, and while nothing is inflated.
        """
        health, config = belief.health, self.config.adaptation
        if bool(health.is_settled.all()):
            return belief
        agrees = accepted & (belief.tilt_std < self.config.settled_tilt)
        if config is not None:
            is_known = health.accepted >= config.memory
            agrees &= is_known & (health.nis <= config.nis_limit) & ~health.is_inconsistent
        return replace(belief, health=replace(health, is_settled=health.is_settled | agrees))

    def export(self, belief: Belief) -> Estimate:
        """State and covariance in the usual coordinates."""
        return beliefs.export(self.chart, belief)


def _put(values: Tensor, index: Tensor, value: Tensor, axis: int) -> Tensor:
    """Values of all slots, with one replaced."""
    return values.index_copy(axis, index, value.unsqueeze(axis))


def _write_clone(P: Float64[Tensor, "*batch n n"], begin: int) -> None:
    """Make the errors of a slot equal to those of the present attitude and position, in place."""
    pose = torch.cat((P[..., THETA, :], P[..., POSITION, :]), dim=-2)
    here = slice(begin, begin + CLONE)
    P[..., here, :] = pose
    P[..., :, here] = pose.mT
    P[..., here, here] = torch.cat((pose[..., THETA], pose[..., POSITION]), dim=-1)


def _grow(P: Float64[Tensor, "*batch n n"], log_growth: Float64[Tensor, "*batch"]) -> None:
    """Variances grown by a factor in place, but for the network's error: that is standardised."""
    those = log_growth > 0
    std = (0.5 * log_growth[those]).exp().unsqueeze(-1).repeat_interleave(P.shape[-1], dim=-1)
    std[..., NETWORK] = 1
    P[those] = std.unsqueeze(-1) * P[those] * std.unsqueeze(-2)


def _empty(t: Float64[Tensor, "*batch"], slots: int) -> Clones:
    shape = (*t.shape, slots)
    p_w = t.new_zeros(*shape, 3)
    return Clones(
        R_ws=so3.identity_like(p_w).contiguous(),
        p_w=p_w,
        name=torch.full(shape, EMPTY, dtype=torch.int64, device=t.device),
        t=t.new_zeros(shape),
        is_used=torch.zeros(shape, dtype=torch.bool, device=t.device),
    )


def _healthy(t: Float64[Tensor, "*batch"]) -> Health:
    zero = torch.zeros_like(t, dtype=torch.int64)
    return Health(
        accepted=zero,
        rejected=zero,
        skipped=zero,
        recoveries=zero,
        resets=zero,
        accepted_t=t,
        rejecting_t=torch.full_like(t, torch.inf),
        nis=torch.full_like(t, gaussian.DOF),
        log_inflation=torch.zeros_like(t),
        log_growth=torch.zeros_like(t),
        last_window=torch.full_like(zero, EMPTY),
        is_settled=torch.zeros_like(t, dtype=torch.bool),
    )
