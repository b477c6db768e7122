"""From windows to measurements: a network with the representation it was trained in."""

from dataclasses import dataclass

import torch

from ginio.core.interfaces import Network
from ginio.core.measurement import Covariance, Measurement, Quantity
from ginio.core.window import Representation, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralFrontend:
    """Answers windows of one representation and one length, and refuses others."""

    network: Network
    window: int
    representation: Representation
    quantity: Quantity
    covariance_factor: float = 1.0

    def measure(self, window: Window) -> Measurement:
        """Motion and covariance in the frame of the window.

        Raises:
            ValueError: the window has another representation or length than the network was
                trained on, or a value that is not finite.
        """
        self._check(window)
        with torch.no_grad():
            mean, axes, log_std = self.network(window.features())
        covariance = Covariance(axes, log_std).scaled(self.covariance_factor**0.5)
        return Measurement(mean, covariance, self.quantity)

    def _check(self, window: Window) -> None:
        if window.representation is not self.representation:
            raise ValueError(
                f"this network was trained on windows in the {self.representation.value!r} "
                f"representation; found {window.representation.value!r}"
            )
        if window.length != self.window:
            raise ValueError(
                f"this network was trained on windows of {self.window} samples; "
                f"found {window.length}"
            )
        invalid = window.first_invalid()
        if invalid is not None:
            raise ValueError(
                f"every sample must be finite; found window {invalid[0]}, sample {invalid[1]}: "
                f"acc {window.acc_f[invalid].tolist()}, gyr {window.gyr_f[invalid].tolist()}"
            )
