"""From the stream a sensor sends to samples a filter can trust, and how far.

Nothing here raises for what a sensor does, and nothing is repaired in silence: every sample that
is dropped, moved, made up or doubted is counted. A sample stands for the interval that ends at its
stamp.
"""

from dataclasses import dataclass, field, fields, replace
from enum import Enum

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

Stamps = Float64[Tensor, " time"]
Samples = Float64[Tensor, "time 6"]


class Kind(Enum):
    """Where a sample comes from."""

    MEASURED = 0
    INTERPOLATED = 1
    """A line across a gap of a few samples."""
    HELD = 2
    """The last one before a gap, with doubt that grows."""
    COASTED = 3
    """Nothing: the gap is too long for any sample to hold."""


class Status(Enum):
    """Of a stream, by how long it has been silent."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class IntakeConfig:
    """What a stream may do before it is doubted."""

    period_s: float = 0.005
    """Between samples, at first; later it is what the stream shows."""
    reorder_s: float = 0.02
    """Samples wait so long for earlier ones; zero if they need not."""
    interpolate_s: float = 0.025
    """Gaps up to here are bridged by a line."""
    timeout_s: float = 0.04
    """Silence beyond this is no longer healthy."""
    hold_s: float = 1.0
    """Gaps up to here hold the last sample."""
    lost_s: float = 10.0
    """Gaps from here on, and clocks that jump back by more than ``hold_s``, begin anew."""
    acc_range: float = float("inf")
    gyr_range: float = float("inf")
    """Where the sensor saturates, m/s² and rad/s."""
    acc_doubt: float = 4.9
    gyr_doubt: float = 0.5
    """Standard deviation of a sample that was not measured; it stays wrong, so doubt adds up."""
    stuck_samples: int = 100
    """Equal samples in a row that no living sensor gives."""
    relock_samples: int = 64
    """Over which the period is found anew."""

    def __post_init__(self) -> None:
        if not 0 < self.period_s < self.interpolate_s <= self.hold_s < self.lost_s:
            raise ValueError(
                "0 < period_s < interpolate_s <= hold_s < lost_s must hold; found "
                f"{self.period_s}, {self.interpolate_s}, {self.hold_s}, {self.lost_s}"
            )
        if self.reorder_s < 0 or self.stuck_samples < 2 or self.relock_samples < 2:
            raise ValueError(
                "reorder_s must not be negative, stuck_samples and relock_samples 2 or more; "
                f"found {self.reorder_s}, {self.stuck_samples}, {self.relock_samples}"
            )


@dataclass(frozen=True, slots=True)
class Counters:
    """What was found wrong so far."""

    nonfinite: int = 0
    duplicate: int = 0
    """Of a stamp and a value that had come before."""
    conflicting: int = 0
    """Of a stamp that had come before with another value."""
    reordered: int = 0
    late: int = 0
    """Too late to be put in order."""
    interpolated: int = 0
    held: int = 0
    coasted: int = 0
    clipped: int = 0
    stuck: int = 0
    resets: int = 0
    rate_changes: int = 0

    def __add__(self, other: "Counters") -> "Counters":
        return Counters(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )


@dataclass(frozen=True, slots=True)
class Intake:
    """A stream so far: a value, so that it can be saved and resumed."""

    waiting_t: Stamps
    waiting: Samples
    """Samples that wait for earlier ones, in the order in which they came."""
    last_t: float | None
    """On the sensor's clock; None before the first sample."""
    last: Float64[Tensor, " 6"]
    offset: float
    """From the sensor's clock to ours, which never jumps."""
    equal: Int64[Tensor, " 6"]
    doubted: Int64[Tensor, " 6"]
    """Samples in a row, per axis, that were equal, and that were doubted."""
    period_s: float
    intervals: Float64[Tensor, " recent"]
    clipped: Bool[Tensor, " second"]
    counters: Counters = field(default_factory=Counters)

    @classmethod
    def begin(cls, config: IntakeConfig) -> "Intake":
        """Before anything was heard."""
        none, nothing = torch.zeros(0, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
        return cls(
            waiting_t=none,
            waiting=none.reshape(0, 6),
            last_t=None,
            last=torch.zeros(6, dtype=torch.float64),
            offset=0.0,
            equal=nothing,
            doubted=nothing,
            period_s=config.period_s,
            intervals=none,
            clipped=torch.zeros(0, dtype=torch.bool),
        )

    @property
    def is_clipping(self) -> bool:
        """More than half of the samples of the last second were at the end of a range."""
        return bool(2 * int(self.clipped.sum()) * self.period_s > 1)

    @property
    def jitter_s(self) -> float:
        """Spread of recent intervals."""
        return float(self.intervals.std()) if len(self.intervals) > 1 else 0.0

    def status(self, config: IntakeConfig, now: float) -> Status:
        """By the sensor's clock, which may have gone on in silence."""
        if self.last_t is None or now - self.last_t >= config.lost_s:
            return Status.LOST
        return Status.HEALTHY if now - self.last_t <= config.timeout_s else Status.DEGRADED


@dataclass(frozen=True, slots=True)
class Clean:
    """Samples in order on a clock that never jumps, with what is known of each."""

    t: Stamps
    dt: Stamps
    acc_s: Float64[Tensor, "time 3"]
    gyr_s: Float64[Tensor, "time 3"]
    extra_std: Samples
    kind: Int64[Tensor, " time"]
    """Values of `Kind`; only windows of what was measured or interpolated are for a network."""
    is_reset: Bool[Tensor, " time"]
    """Nothing joins this sample to the one before it."""

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Samples in the order of their stamps, none of them twice."""

    t: Stamps
    values: Samples
    is_reset: Bool[Tensor, " time"]
    counters: Counters


def receive(
    config: IntakeConfig,
    intake: Intake,
    t: Float[Tensor, " time"],
    acc_s: Float[Tensor, "time 3"],
    gyr_s: Float[Tensor, "time 3"],
    *,
    is_end: bool = False,
) -> tuple[Intake, Clean]:
    """Take what a sensor sent, and give what can be used by now; at the end, all of it."""
    stamps = torch.cat((intake.waiting_t, t.double()))
    values = torch.cat((intake.waiting, torch.cat((acc_s, gyr_s), dim=-1).double()))
    good = torch.isfinite(stamps) & torch.isfinite(values).all(-1)
    stamps, values = stamps[good], values[good]
    lost = int((~good).sum())
    waits = torch.zeros_like(stamps, dtype=torch.bool)
    if not is_end and len(stamps):
        # Behind a break of the clock nothing waits: what came before will not be added to.
        epoch = _epochs(config, intake, stamps)
        is_current = epoch == epoch[-1]
        waits = is_current & (stamps > stamps[is_current].max() - config.reorder_s)
    ordered = _ordered(config, intake, stamps[~waits], values[~waits])
    counted = intake.counters + ordered.counters + Counters(nonfinite=lost)
    intake = replace(intake, waiting_t=stamps[waits], waiting=values[waits], counters=counted)
    return _released(config, intake, ordered)


def _epochs(config: IntakeConfig, intake: Intake, t: Stamps) -> Int64[Tensor, " time"]:
    """How often the clock broke before each sample, in the order in which they came."""
    before = t[:1] if intake.last_t is None else t.new_tensor([intake.last_t])
    step = torch.cat((before, t)).diff()
    return ((step < -config.hold_s) | (step >= config.lost_s)).cumsum(0)


def _ordered(config: IntakeConfig, intake: Intake, t: Stamps, values: Samples) -> _Ordered:
    """Sort what is a little late, drop what is too late or came before, find where time broke."""
    epoch = _epochs(config, intake, t)
    # Epochs far apart on one axis, so that one running maximum and one sort serve all of them.
    span = 2 * float((t.max() - t.min()).abs()) + 1 if len(t) else 1.0
    key = t - t[:1] + span * epoch
    reached = torch.cummax(key, 0).values if len(key) else key
    is_late = key < reached - config.reorder_s
    if intake.last_t is not None:
        is_late |= (epoch == 0) & (t < intake.last_t)
    order = torch.argsort(key[~is_late], stable=True)
    moved = int((key < reached)[~is_late].sum())
    t, values, key, epoch = (x[~is_late][order] for x in (t, values, key, epoch))
    again = torch.zeros_like(epoch, dtype=torch.bool)
    same = again.clone()
    if len(t):
        last_t = torch.full_like(t[:1], torch.nan if intake.last_t is None else intake.last_t)
        again = torch.cat((last_t, t)).diff() == 0
        same = again & (torch.cat((intake.last.unsqueeze(0), values)).diff(dim=0) == 0).all(-1)
    counters = Counters(
        late=int(is_late.sum()),
        reordered=moved,
        duplicate=int(same.sum()),
        conflicting=int((again & ~same).sum()),
    )
    t, values, epoch = t[~again], values[~again], epoch[~again]
    is_reset = torch.cat((torch.zeros_like(epoch[:1]), epoch)).diff() > 0
    return _Ordered(t, values, is_reset, counters)


def _released(config: IntakeConfig, intake: Intake, ordered: _Ordered) -> tuple[Intake, Clean]:
    """Fill gaps, find what is clipped or stuck, and put all on one clock."""
    t, values, is_reset = ordered.t, ordered.values, ordered.is_reset
    if not len(t):
        return intake, _nothing()
    last_t = float(t[0]) - intake.period_s if intake.last_t is None else intake.last_t
    last = values[0] if intake.last_t is None else intake.last
    step = torch.cat((t.new_tensor([last_t]), t)).diff()
    step = torch.where(is_reset, torch.full_like(step, intake.period_s), step)
    # The clock of the output runs on across a reset by one period.
    start = last_t + intake.offset
    clock = start + step.cumsum(0)
    before = torch.cat((last.unsqueeze(0), values[:-1]))
    counts, kinds = _fill(config, intake.period_s, step)
    row = torch.arange(len(t)).repeat_interleave(counts)
    place = _position_in_run(row) + 1
    share = (place.double() / counts[row]).unsqueeze(-1)
    is_given = place == counts[row]
    kind = torch.where(is_given, torch.full_like(row, Kind.MEASURED.value), kinds[row])
    line = before[row] + share * (values[row] - before[row])
    filled = torch.where((kind == Kind.INTERPOLATED.value).unsqueeze(-1), line, before[row])
    filled = torch.where(is_given.unsqueeze(-1), values[row], filled)
    dt = step[row] / counts[row]
    out_t = clock[row] - step[row] * (1 - share.squeeze(-1))
    intake, extra_std = _doubt(config, intake, filled, kind)
    intake = _remembered(config, intake, ordered, step, float(clock[-1]))
    made = {
        name: int((kind == k.value).sum())
        for name, k in (
            ("interpolated", Kind.INTERPOLATED),
            ("held", Kind.HELD),
            ("coasted", Kind.COASTED),
        )
    }
    counters = intake.counters + Counters(**made, resets=int(is_reset.sum()))
    return replace(intake, counters=counters), Clean(
        out_t, dt, filled[:, :3], filled[:, 3:], extra_std, kind, is_reset[row] & (place == 1)
    )


def _fill(
    config: IntakeConfig, period_s: float, step: Stamps
) -> tuple[Int64[Tensor, " time"], Int64[Tensor, " time"]]:
    """How many samples stand for each interval, and of which kind those are that were not given."""
    # Up to 1.7 periods are jitter: nobody can tell them from a sample that is missing.
    counts = torch.where(step < 1.7 * period_s, 1, (step / period_s).round()).long()
    kinds = torch.full_like(counts, Kind.INTERPOLATED.value)
    kinds[step > config.interpolate_s] = Kind.HELD.value
    kinds[step > config.hold_s] = Kind.COASTED.value
    return counts, kinds


def _doubt(
    config: IntakeConfig, intake: Intake, values: Samples, kind: Int64[Tensor, " time"]
) -> tuple[Intake, Samples]:
    """Standard deviations beyond the noise: an error that stays adds up as time, not as its root.

    After k samples it has the variance of ``k²`` single ones, so the k-th adds ``2k - 1``.
    """
    limits = values.new_tensor([config.acc_range] * 3 + [config.gyr_range] * 3)
    clipped = values.abs() >= 0.999 * limits
    is_equal = torch.cat((intake.last.unsqueeze(0), values)).diff(dim=0) == 0
    is_equal[kind != Kind.MEASURED.value] = False
    equal = _run_lengths(is_equal, intake.equal)
    stuck = equal >= config.stuck_samples - 1
    doubted = _run_lengths(
        clipped | stuck | (kind >= Kind.HELD.value).unsqueeze(-1), intake.doubted
    )
    doubt = values.new_tensor([config.acc_doubt] * 3 + [config.gyr_doubt] * 3)
    std = doubt * (2 * doubted - 1).clamp(min=0).double().sqrt()
    recent = round(1 / intake.period_s)
    found = Counters(clipped=int(clipped.any(-1).sum()), stuck=int(stuck.any(-1).sum()))
    return replace(
        intake,
        equal=equal[-1],
        doubted=doubted[-1],
        clipped=torch.cat((intake.clipped, clipped.any(-1)))[-recent:],
        counters=intake.counters + found,
    ), std


def _remembered(
    config: IntakeConfig,
    intake: Intake,
    ordered: _Ordered,
    step: Stamps,
    clock: float,
) -> Intake:
    """The end of what was released, and the period that recent intervals show."""
    known = step[~ordered.is_reset & (step <= config.hold_s)]
    intervals = torch.cat((intake.intervals, known))[-config.relock_samples :]
    period_s, changes = intake.period_s, 0
    if len(intervals) == config.relock_samples:
        shown = float(intervals.median())
        if abs(shown / period_s - 1) > 0.2:
            period_s, changes = shown, 1
    return replace(
        intake,
        last_t=float(ordered.t[-1]),
        last=ordered.values[-1],
        offset=clock - float(ordered.t[-1]),
        period_s=period_s,
        intervals=intervals,
        counters=intake.counters + Counters(rate_changes=changes),
    )


def _position_in_run(row: Int64[Tensor, " time"]) -> Int64[Tensor, " time"]:
    """How many equal entries stand before each one of a sorted list."""
    index = torch.arange(len(row))
    begins = torch.cat((torch.ones_like(row[:1]), row.diff())) > 0
    return index - torch.cummax(torch.where(begins, index, torch.zeros_like(index)), 0).values


def _run_lengths(
    mask: Bool[Tensor, "time axis"], before: Int64[Tensor, " axis"]
) -> Int64[Tensor, "time axis"]:
    """Length of the run of true entries that ends at each entry, continued from before."""
    index = torch.arange(1, len(mask) + 1).unsqueeze(-1).expand(mask.shape)
    broken = torch.where(mask, torch.zeros_like(index), index)
    since = torch.cummax(broken, 0).values
    return torch.where(mask, index - since + torch.where(since == 0, before, 0), 0)


def _nothing() -> Clean:
    none = torch.zeros(0, dtype=torch.float64)
    flat = none.reshape(0, 3)
    return Clean(none, none, flat, flat, none.reshape(0, 6), none.long(), none.to(torch.bool))
