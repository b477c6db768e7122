"""A filter along a stream with gaps: what to do where there is nothing to integrate."""

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from ginio.filters.belief import Belief
from ginio.filters.cloning import CloningFilter
from ginio.filters.intake import Clean, Kind
from ginio.filters.start import Start, StartStd, start_moving
from ginio.geometry import frames, so3


@dataclass(frozen=True, kw_only=True)
class Blindness:
    """What may happen while nothing is heard."""

    acc: float = 1.0
    """Change of velocity, m/s/√s."""
    gyr: float = 0.1
    """Change of attitude, rad/√s."""
    away_s: float = 10.0
    """Time for which a stream that begins anew is taken to have been away."""
    level_s: float = 0.5
    """Samples that a new level is taken from."""


def follow(
    filter_: CloningFilter, belief: Belief, clean: Clean, blindness: Blindness | None = None
) -> Belief:
    """The belief after the samples of one stream, across everything that befell it."""
    blindness = Blindness() if blindness is None else blindness
    coasted = clean.kind == Kind.COASTED.value
    turns = torch.cat((torch.ones_like(coasted[:1]), coasted[1:] != coasted[:-1])) | clean.is_reset
    bounds = [*turns.nonzero().flatten().tolist(), len(clean)]
    for begin, end in pairwise(bounds):
        part = slice(begin, end)
        if bool(clean.is_reset[begin]):
            belief = begun_anew(filter_, belief, clean, begin, blindness)
        if bool(coasted[begin]):
            belief = coast(filter_, belief, clean.dt[part].sum(), blindness)
        else:
            acc_s, gyr_s, extra = (
                x[part].expand(*belief.t.shape, end - begin, x.shape[-1])
                for x in (clean.acc_s, clean.gyr_s, clean.extra_std)
            )
            belief = filter_.propagate(belief, acc_s, gyr_s, clean.dt[part], extra)
    return belief


def coast(filter_: CloningFilter, belief: Belief, duration: Tensor, blindness: Blindness) -> Belief:
    """On at the same velocity and attitude, less certain of both; windows begin anew."""
    state = belief.state
    gravity_w = state.p_w.new_tensor(filter_.config.gravity_w)
    acc_s = state.bias_acc_s - so3.rotate(state.R_ws.mT, gravity_w)
    std = state.p_w.new_tensor([blindness.acc] * 3 + [blindness.gyr] * 3) / duration.sqrt()
    blind = filter_.propagate(
        belief,
        acc_s.unsqueeze(-2),
        state.bias_gyr_s.unsqueeze(-2),
        duration.reshape(1),
        std.expand(*belief.t.shape, 1, 6),
    )
    return filter_.forget_clones(blind)


def begun_anew(
    filter_: CloningFilter, belief: Belief, clean: Clean, begin: int, blindness: Blindness
) -> Belief:
    """Level again, at the old place and heading as far as they can still be known.

    Biases are kept. The velocity is unknown, and the place by as far as one can have come.
    """
    count = max(1, round(blindness.level_s / float(clean.dt[begin])))
    part = slice(begin, min(begin + count, len(clean)))
    old = filter_.export(belief)
    shape = belief.t.shape
    acc_s, gyr_s = (
        x[part].expand(*shape, -1, 3) - bias.unsqueeze(-2)
        for x, bias in (
            (clean.acc_s, belief.state.bias_acc_s),
            (clean.gyr_s, belief.state.bias_gyr_s),
        )
    )
    level = start_moving(acc_s.flip(-2), -gyr_s.flip(-2), clean.dt[part])
    state = replace(
        belief.state,
        R_ws=frames.yaw_rotation(old.state.R_ws) @ level.state.R_ws,
        v_w=torch.zeros_like(old.state.v_w),
    )
    start = Start(belief.t, state, _after_absence(level, old.covariance, blindness))
    fresh = filter_.start(start)
    health = replace(
        belief.health,
        resets=belief.health.resets + 1,
        accepted_t=belief.t,
        is_settled=fresh.health.is_settled,
    )
    return replace(fresh, health=health)


def _after_absence(level: Start, old: Tensor, blindness: Blindness) -> Tensor:
    covariance = level.covariance.clone()
    up_s = level.state.R_ws[..., 2, :]
    vertical = up_s.unsqueeze(-1) * up_s.unsqueeze(-2)
    eye = torch.eye(3, dtype=old.dtype, device=old.device)
    heading = old[..., :3, :3].diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    covariance[..., :3, :3] += (heading + blindness.gyr**2 * blindness.away_s) * vertical
    far = StartStd().moving_velocity * blindness.away_s
    covariance[..., 6:9, 6:9] = old[..., 6:9, 6:9] + far**2 * eye
    covariance[..., 9:, :9] = 0
    covariance[..., :9, 9:] = 0
    covariance[..., 9:, 9:] = old[..., 9:, 9:]
    return covariance
