"""What several networks share: what they refuse, and where the outputs of recurrent ones lie."""

from typing import Any, get_args

from torch import Tensor


def check_features(features: Tensor, window: int, channels: int) -> None:
    """Refuse features of another shape or dtype than the network was built for."""
    if features.ndim != 4 or features.shape[1:] != (channels, 3, window):
        raise ValueError(
            f"features must be (batch, {channels}, 3, {window}); found {tuple(features.shape)}"
        )
    if not features.is_floating_point():
        raise ValueError(f"features must be floating point; found {features.dtype}")


def check_shape(
    window: int, channels: int, groups: tuple[tuple[int, int], ...], dropout: float
) -> None:
    """Refuse a residual network without samples, groups or width."""
    if window < 1:
        raise ValueError(f"window must be at least 1 sample; found {window}")
    if channels < 1:
        raise ValueError(f"channels must be at least 1; found {channels}")
    if not groups or any(width < 1 or blocks < 1 for width, blocks in groups):
        raise ValueError(f"groups must list (channels, blocks), each at least 1; found {groups}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1); found {dropout}")


def check_choice(name: str, value: str, literal: Any) -> None:
    """Refuse a value that is not one of a Literal's."""
    if value not in get_args(literal):
        raise ValueError(f"{name} must be one of {', '.join(get_args(literal))}; found {value!r}")


def labelled_samples(window: int, surplus: int) -> tuple[int, ...]:
    """Samples whose motion AirIO's outputs tell, of a window whose first samples are dropped.

    One output for each started nine; the first tells the fifteenth sample, and the last ones the
    window's last.
    """
    return tuple(min(first + 14, window - 1) for first in range(surplus, window, 9))
