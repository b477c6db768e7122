"""Networks: vector features in, mean, axes and log standard deviations out.

The registry is a type: a new network joins by its config's place in `AnyConfig`.
"""

from ginio.models.resnet1d import ResNet1dConfig as ResNet1dConfig
from ginio.models.temporal import TemporalConfig as TemporalConfig

AnyConfig = TemporalConfig | ResNet1dConfig
