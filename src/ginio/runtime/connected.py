"""The connected loop: a filter that propagates raw samples, and a network that corrects it.

The filter hands the network windows without the biases it has found, in attitudes of its own, and
takes the answer as a measurement. One stream or hundreds at once: every tensor has a leading axis
of runs, and all runs of a call share one clock.

A window's samples are means of ``factor`` raw ones, stamped at their middle. The filter stands at
such a middle whenever it is corrected, so the span of a window and that of its displacement are
the same to the sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ginio.core.interfaces import Frontend
from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.core.window import Representation, SensorWindow, Window
from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.gaussian import Innovation
from ginio.filters.observation import Frame
from ginio.filters.start import Start
from ginio.geometry import so3
from ginio.geometry.integrals import running_products

Signal = Float[Tensor, "run time 3"]


@dataclass(frozen=True, slots=True)
class History:
    """The last samples of network rate, oldest first, with the attitudes the gyroscope gave them.

    ``R_0s`` is counted from the first sample and never corrected, so that no correction of the
    filter tears a window apart; only what lies between two samples matters.
    """

    acc_s: Float64[Tensor, "run window 3"]
    gyr_s: Float64[Tensor, "run window 3"]
    R_0s: Float64[Tensor, "run window 3 3"]

    @classmethod
    def resting(
        cls, acc_s: Float64[Tensor, "run 3"], gyr_s: Float64[Tensor, "run 3"], length: int
    ) -> "History":
        """As if the sensor had always stood as in one sample."""
        samples = (acc_s.unsqueeze(1), gyr_s.unsqueeze(1), so3.identity_like(acc_s).unsqueeze(1))
        return cls(*(x.repeat_interleave(length, dim=1) for x in samples))

    def followed_by(self, acc_s: Tensor, gyr_s: Tensor, R_0s: Tensor) -> "History":
        """The newest samples of the same length."""
        length = self.acc_s.shape[1]
        pairs = ((self.acc_s, acc_s), (self.gyr_s, gyr_s), (self.R_0s, R_0s))
        return History(*(torch.cat(pair, dim=1)[:, -length:] for pair in pairs))


@dataclass(frozen=True, slots=True)
class Moment:
    """All that is carried from one correction to the next."""

    belief: Belief
    history: History
    sample: int
    """Number of the last sample of network rate."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One turn of the loop: what was believed after it, and what the network had said."""

    moment: Moment
    measurement: Measurement
    """In the frame in which the filter took it."""
    innovation: Innovation


@dataclass(frozen=True, slots=True)
class Stream:
    """Raw samples of any number of runs on one clock."""

    t: Float64[Tensor, " time"]
    acc_s: Signal
    gyr_s: Signal

    def sampled(self, factor: int) -> "Stream":
        """Means of ``factor`` samples, stamped at their middle."""
        count = len(self.t) // factor
        whole = slice(0, count * factor)

        def mean(signal: Signal) -> Float[Tensor, "run time_out 3"]:
            return signal[:, whole].unflatten(1, (count, factor)).mean(2)

        return Stream(self.t[factor // 2 : whole.stop : factor], mean(self.acc_s), mean(self.gyr_s))


@dataclass(frozen=True, slots=True)
class Steps:
    """What is propagated between two raw samples: for how long, and the mean of both."""

    dt: Float64[Tensor, " time"]
    acc_s: Signal
    gyr_s: Signal

    @classmethod
    def between(cls, raw: Stream) -> "Steps":
        """The steps of a stream, one fewer than its samples."""
        acc, gyr = raw.acc_s, raw.gyr_s
        return cls(raw.t.diff(), 0.5 * (acc[:, 1:] + acc[:, :-1]), 0.5 * (gyr[:, 1:] + gyr[:, :-1]))


@dataclass(frozen=True, kw_only=True)
class ConnectedLoop:
    """A frontend and a filter, and how they meet."""

    frontend: Frontend
    filter: CloningFilter
    representation: Representation
    quantity: Quantity
    window: int
    """Samples of network rate."""
    factor: int
    """Raw samples in each of them."""
    every: int
    """Samples of network rate from one correction to the next."""
    frame: Frame
    """In which the filter takes measurements: of the last sensor frame, or of the world."""

    def __post_init__(self) -> None:
        if min(self.window, self.factor, self.every) < 1:
            raise ValueError(
                "window, factor and every must be 1 or more; found "
                f"{self.window}, {self.factor}, {self.every}"
            )
        if self.frame is Frame.HEADING:
            raise ValueError("the loop measures in the last sensor frame or in the world")
        slots, needed = self.filter.config.clones, self.clones_needed
        if slots < needed:
            raise ValueError(
                f"displacements over {self.window} samples, one every {self.every}, need a filter "
                f"of {needed} clones; found {slots}"
            )

    @property
    def clones_needed(self) -> int:
        """Poses alive at once: those at which a window begins or ends."""
        if self.quantity is Quantity.VELOCITY:
            return 0
        return 2 * (self.window // self.every + 2)

    def run(self, stream: Stream, start: Start, first: int) -> Iterator[Correction]:
        """Corrections from the start to the end of a stream.

        Args:
            stream: raw samples.
            start: the state at the middle of sample ``first`` of network rate.
            first: that sample; earlier ones only fill the first window.
        """
        sampled, steps = stream.sampled(self.factor), Steps.between(stream)
        moment = self.begin(sampled, steps, start, first)
        stops = [s for s in range(first + 1, len(sampled.t)) if self._is_stop(s, first)]
        for stop in stops:
            moment = self.propagated(moment, sampled, steps, stop)
            if self._is_due(stop, first):
                # What was propagated just now nobody else has seen.
                correction = self.corrected(moment, donate=True)
                moment = correction.moment
                yield correction

    def begin(self, sampled: Stream, steps: Steps, start: Start, first: int) -> Moment:
        """The moment of a start, with the samples before it in the history."""
        moment = Moment(
            self.filter.start(start),
            History.resting(sampled.acc_s[:, 0], sampled.gyr_s[:, 0], self.window),
            0,
        )
        history = self._followed(moment, sampled, steps, first)
        return self._cloned(replace(moment, history=history, sample=first))

    def propagated(self, moment: Moment, sampled: Stream, steps: Steps, stop: int) -> Moment:
        """The moment of a later sample, by raw samples alone."""
        span = self._steps(moment.sample, stop)
        belief = self.filter.propagate(
            moment.belief, steps.acc_s[:, span], steps.gyr_s[:, span], steps.dt[span]
        )
        history = self._followed(moment, sampled, steps, stop)
        return self._cloned(Moment(belief, history, stop))

    def corrected(self, moment: Moment, *, donate: bool = False) -> Correction:
        """The moment after the network has been asked about the window that ends in it.

        With ``donate`` the belief of the moment is given up, as in `CloningFilter.update`.
        """
        window = self.felt(moment)
        R_wf = window.R_wf.double()
        if self.frame is Frame.LAST:
            R_wf = moment.belief.state.R_ws.mT @ R_wf
        measurement = _in_double(self.frontend.measure(window)).rotated(R_wf)
        belief, innovation = self.filter.update(
            moment.belief,
            measurement,
            end=moment.sample,
            begin=moment.sample - self.window + 1,
            frame=self.frame,
            donate=donate,
        )
        return Correction(replace(moment, belief=belief), measurement, innovation)

    def felt(self, moment: Moment) -> Window:
        """The window that ends now, without biases, in the filter's own attitude."""
        state, history = moment.belief.state, moment.history
        R_ws = state.R_ws.unsqueeze(1) @ (history.R_0s[:, -1:].mT @ history.R_0s)
        window = SensorWindow(
            (history.acc_s - state.bias_acc_s.unsqueeze(1)).float(),
            (history.gyr_s - state.bias_gyr_s.unsqueeze(1)).float(),
            R_ws.float(),
        )
        return window.represent(self.representation)

    def _followed(self, moment: Moment, sampled: Stream, steps: Steps, stop: int) -> History:
        span = self._steps(moment.sample, stop)
        rate_s = steps.gyr_s[:, span] - moment.belief.state.bias_gyr_s.unsqueeze(1)
        turns = running_products(so3.exp(rate_s * steps.dt[span].unsqueeze(-1)))
        R_0s = moment.history.R_0s[:, -1:] @ turns[:, self.factor - 1 :: self.factor]
        new = slice(moment.sample + 1, stop + 1)
        return moment.history.followed_by(sampled.acc_s[:, new], sampled.gyr_s[:, new], R_0s)

    def _steps(self, sample: int, stop: int) -> slice:
        """Those between the middles of two samples."""
        middle = self.factor // 2
        return slice(sample * self.factor + middle, stop * self.factor + middle)

    def _is_due(self, sample: int, first: int) -> bool:
        return (sample - first) % self.every == 0

    def _begins_window(self, sample: int, first: int) -> bool:
        end = sample + self.window - 1
        return self.quantity is Quantity.DISPLACEMENT and self._is_due(end, first)

    def _is_stop(self, sample: int, first: int) -> bool:
        return self._is_due(sample, first) or self._begins_window(sample, first)

    def _cloned(self, moment: Moment) -> Moment:
        if self.quantity is Quantity.VELOCITY:
            return moment
        return replace(moment, belief=self.filter.clone(moment.belief, moment.sample))


def _in_double(measured: Measurement) -> Measurement:
    sigma = measured.covariance
    covariance = Covariance(sigma.axes.double(), sigma.log_std.double())
    return Measurement(measured.mean.double(), covariance, measured.quantity)
