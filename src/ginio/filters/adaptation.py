"""When innovations are larger than promised: how to tell, and what to do about it.

Two faults call for two answers. A network that is persistently less certain than it says has its
covariances inflated until innovations fit again. A gate through which nothing passes any more
means that filter and network contradict each other, and neither is believed over the other: the
uncertainties of both grow by the same factor.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ginio.filters.belief import Health
from ginio.filters.gaussian import DOF, Innovation


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """How quickly to doubt."""

    memory: float = 20.0
    """Updates over which innovations are averaged."""
    nis_limit: float = 5.0
    """Mean above which the network is inconsistent; 3 is honest, and chance reaches 5 in 1e-5."""
    gain: float = 0.05
    """Of the logarithm of the inflation, for each update and unit of relative excess."""
    state_share: float = 2.0
    """Growth of the state's covariance for each growth of the network's, both as logarithms."""
    recover_after_s: float = 0.5
    """Rejections for so long without an acceptance end in a recovery."""
    largest_inflation: float = 1e4

    def __post_init__(self) -> None:
        if self.memory < 1 or self.nis_limit <= DOF or self.largest_inflation < 1:
            raise ValueError(
                "memory and largest_inflation must be 1 or more, and nis_limit above 3; found "
                f"{self.memory}, {self.largest_inflation}, {self.nis_limit}"
            )
        if self.gain < 0 or self.recover_after_s < 0:
            raise ValueError(
                "gain and recover_after_s must not be negative; found "
                f"{self.gain}, {self.recover_after_s}"
            )


def stalled(
    config: Adaptation, health: Health, t: Float[Tensor, "*batch"], innovation: Innovation
) -> Bool[Tensor, "*batch"]:
    """Rejected, as everything for a while."""
    return innovation.rejected & (t - health.rejecting_t >= config.recover_after_s)


def recovery_factor(
    config: Adaptation, innovation: Innovation, recovering: Bool[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """By which both uncertainties have to grow for the innovation to have the length of one."""
    factor = innovation.nis.clamp(1, config.largest_inflation)
    return torch.where(recovering, factor, torch.ones_like(factor))


def recorded(
    config: Adaptation | None,
    health: Health,
    t: Float[Tensor, "*batch"],
    innovation: Innovation,
    factor: Float[Tensor, "*batch"],
) -> Health:
    """Health after an update, with the inflation of the next one."""
    accepted = innovation.accepted | (factor > 1)
    rejected = innovation.usable & ~accepted
    first = torch.where(torch.isinf(health.rejecting_t) & rejected, t, health.rejecting_t)
    counted = replace(
        health,
        accepted=health.accepted + accepted,
        rejected=health.rejected + rejected,
        skipped=health.skipped + ~innovation.usable,
        recoveries=health.recoveries + (factor > 1),
        accepted_t=torch.where(accepted, t, health.accepted_t),
        rejecting_t=torch.where(accepted, torch.full_like(t, torch.inf), first),
    )
    return counted if config is None else _adapted(config, counted, innovation, factor)


def _adapted(
    config: Adaptation, health: Health, innovation: Innovation, factor: Float[Tensor, "*batch"]
) -> Health:
    """The logarithm of the inflation follows the excess of the innovations, once it is clear.

    It starts to move when their mean is above the limit, and rests again when it is back at zero,
    so that chance alone inflates nothing.
    """
    excess = (innovation.nis / factor / DOF - 1).clamp(max=DOF)
    nis = health.nis + (DOF * (excess + 1) - health.nis) / config.memory
    active = (health.log_inflation > 0) | (nis > config.nis_limit)
    log = health.log_inflation + factor.log() + torch.where(active, config.gain * excess, 0.0)
    log = log.clamp(0, math.log(config.largest_inflation))
    usable = innovation.usable
    rise = (log - health.log_inflation).clamp(min=0) * config.state_share
    is_evident = usable & (nis > config.nis_limit)
    growth = torch.where(factor > 1, factor.log(), torch.where(is_evident, rise, 0.0))
    return replace(
        health,
        log_growth=growth,
        nis=torch.where(usable, nis, health.nis),
        log_inflation=torch.where(usable, log, health.log_inflation),
    )
