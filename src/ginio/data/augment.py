"""Changes to windows that training should not mind: functions on a batch of windows.

Sensor errors act on what the sensor felt, before windows are written in a frame; frame errors act
on the attitudes; rotations act on the finished window and its target alike.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ginio.core.window import SensorWindow, Window
from ginio.geometry import so3

Turn = Literal["none", "yaw", "quarter", "so3"]
Motion = Float[Tensor, "batch *output 3"]
"""One motion of each window, or several."""


@dataclass(frozen=True, kw_only=True)
class AugmentConfig:
    """How strongly training windows are changed; all zero changes nothing."""

    is_mirrored: bool = False
    """Mirror half of the windows in the plane of the sensor's first and third axis."""
    turn: Turn = "none"
    """Rotate window and target: about the vertical, by the 24 axis permutations, or freely."""
    bias_acc_mps2: float = 0.0
    """Half width of a uniform constant error for each axis and window."""
    bias_gyr_radps: float = 0.0
    drift_gyr_radps: float = 0.0
    """As the bias, of a gyroscope from which the attitudes were counted, and which turns them."""
    noise_acc_mps2: float = 0.0
    """Standard deviation of white noise for each sample."""
    noise_gyr_radps: float = 0.0
    scale: float = 0.0
    """Standard deviation of a common relative error of each sensor's scale."""
    shift_samples: int = 0
    """Largest shift of inertial samples against the attitude, either way."""
    tilt_deg: float = 0.0
    """Standard deviation of a constant error of the attitude about each sensor axis."""


def disturb(
    window: SensorWindow,
    config: AugmentConfig,
    generator: torch.Generator,
    *,
    step_s: float | None = None,
) -> SensorWindow:
    """Sensor and attitude errors, drawn anew for each window.

    ``step_s`` is the time between samples, by which attitudes drift.
    """
    if config.drift_gyr_radps:
        if step_s is None:
            raise ValueError("attitudes drift with time; expected step_s, found none")
        window = _drifted(window, config.drift_gyr_radps, step_s, generator)
    acc_s = _measured(window.acc_s, config.bias_acc_mps2, config.noise_acc_mps2, config, generator)
    gyr_s = _measured(
        window.gyr_s, config.bias_gyr_radps, config.noise_gyr_radps, config, generator
    )
    R_ws = window.R_ws
    if config.tilt_deg:
        error = torch.deg2rad(config.tilt_deg * _normal(acc_s[:, 0], generator))
        R_ws = R_ws @ so3.exp(error).unsqueeze(1)
    if config.shift_samples:
        acc_s, gyr_s = shifted((acc_s, gyr_s), config.shift_samples, generator)
    return SensorWindow(acc_s, gyr_s, R_ws)


def mirror(
    window: SensorWindow, motion_w: Motion, generator: torch.Generator
) -> tuple[SensorWindow, Motion]:
    """Mirror a random half of the windows, sensor, attitude, world and motion together.

    A mirrored flight is a flight. Force and motion are polar vectors and turn by the mirror M,
    angular rate is axial and turns by -M, and ``M R_ws M`` is a rotation again.
    """
    heads = torch.rand(len(motion_w), 1, generator=generator, device=motion_w.device) < 0.5
    m = torch.ones_like(window.acc_s[:, 0])
    m[:, 1:2] -= 2 * heads.to(m)
    sign = m.prod(-1, keepdim=True)
    M_s, axial = m.unsqueeze(1), (sign * m).unsqueeze(1)
    R_ws = m[:, None, :, None] * window.R_ws * m[:, None, None, :]
    return SensorWindow(M_s * window.acc_s, axial * window.gyr_s, R_ws), _each(
        m, motion_w
    ) * motion_w


def turn(
    window: Window,
    target_f: Motion,
    kind: Turn,
    generator: torch.Generator,
) -> tuple[Window, Motion]:
    """Rotate windows and their targets alike, each window by a rotation of its own."""
    if kind == "none":
        return window, target_f
    R_af = rotations(kind, len(target_f), generator).to(target_f)
    return window.rotated(R_af), so3.rotate(_each(R_af, target_f), target_f)


def rotations(kind: Turn, count: int, generator: torch.Generator) -> Float[Tensor, "count 3 3"]:
    """Rotations of one kind, uniform in it."""
    device = generator.device
    match kind:
        case "so3":
            q = torch.randn(count, 4, generator=generator, device=device)
            return so3.matrix_from_quaternion_wxyz(q)
        case "yaw":
            return so3.about_z(2 * torch.pi * torch.rand(count, generator=generator, device=device))
        case "quarter":
            group = _quarter_turns().to(device)
            pick = torch.randint(len(group), (count,), generator=generator, device=device)
            return group[pick]
        case "none":
            return torch.eye(3, device=device).expand(count, 3, 3)


def shifted(
    signals: tuple[Tensor, ...], most: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Signals moved in time by a whole number of samples, their ends repeated."""
    batch, time, _ = signals[0].shape
    device = signals[0].device
    by = torch.randint(-most, most + 1, (batch, 1), generator=generator, device=device)
    index = (torch.arange(time, device=device) + by).clamp(0, time - 1)
    index = index.unsqueeze(-1).expand(batch, time, 3)
    return tuple(signal.gather(1, index) for signal in signals)


def frame_error(window: SensorWindow, angle_deg: float, generator: torch.Generator) -> SensorWindow:
    """Attitudes off by one angle about a random axis, the same through each window (Eq. 41)."""
    R_error = so3.random_with_angle(
        len(window.acc_s),
        angle_deg * torch.pi / 180,
        generator=generator,
        dtype=window.acc_s.dtype,
        device=window.acc_s.device,
    )
    return replace(window, R_ws=R_error.unsqueeze(1) @ window.R_ws)


def _measured(
    signal: Float[Tensor, "batch time 3"],
    bias: float,
    noise: float,
    config: AugmentConfig,
    generator: torch.Generator,
) -> Float[Tensor, "batch time 3"]:
    batch = signal[:, :1]
    if config.scale:
        signal = signal * (1 + config.scale * _normal(batch[..., :1], generator))
    if bias:
        uniform = torch.rand(batch.shape, generator=generator, device=signal.device)
        signal = signal + bias * (2 * uniform.to(signal) - 1)
    if noise:
        signal = signal + noise * _normal(signal, generator)
    return signal


def _each(of_window: Tensor, motion: Motion) -> Tensor:
    """What belongs to a window, for every motion of it."""
    return of_window.unsqueeze(1) if motion.ndim == 3 else of_window


def _drifted(
    window: SensorWindow, most: float, step_s: float, generator: torch.Generator
) -> SensorWindow:
    """A bias b of the rate, and the attitudes that a count with it gives, the last one kept.

    Seen from the last frame, ``R_ls b`` turns for the time of each sample; summed up from a sample
    to the end it is a small rotation, by which that sample's attitude is off.
    """
    uniform = torch.rand(window.gyr_s[:, :1].shape, generator=generator, device=generator.device)
    bias_s = most * (2 * uniform.to(window.gyr_s) - 1)
    R_wl = window.R_ws[:, -1:]
    R_ls = R_wl.mT @ window.R_ws
    turned_l = so3.rotate(R_ls, step_s * bias_s)
    left_l = turned_l.flip(1).cumsum(1).flip(1) - turned_l
    R_ws = R_wl @ so3.exp(-left_l) @ R_ls
    return SensorWindow(window.acc_s, window.gyr_s + bias_s, R_ws)


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, device=like.device).to(like)


def _quarter_turns() -> Float[Tensor, "24 3 3"]:
    signed = [
        torch.diag(torch.tensor(signs)) @ torch.eye(3)[list(order)]
        for signs in torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 3).tolist()
        for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    ]
    return torch.stack([R for R in signed if torch.det(R) > 0])
