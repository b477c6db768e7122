"""Every named network of the paper."""

from collections.abc import Mapping
from types import MappingProxyType

from ginio.models import AnyConfig, ResNet1dConfig, TemporalConfig

NETWORKS: Mapping[str, AnyConfig] = MappingProxyType(
    {
        # GINIO-R with diagonal and spectral covariance, normalised by scale only.
        "ginio-rd": TemporalConfig(covariance="diagonal"),
        "ginio-rs": TemporalConfig(covariance="spectral"),
        # The same as the paper has them, with its parameter counts, 571,872 and 802,661.
        "ginio-rd-paper": TemporalConfig(covariance="diagonal", norm="batch"),
        "ginio-rs-paper": TemporalConfig(
            covariance="spectral", norm="batch", determinant_correction=True
        ),
        # The baseline without symmetry.
        "resnet1d": ResNet1dConfig(),
    }
)
