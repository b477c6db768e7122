"""Networks: vector features in, mean, axes and log standard deviations out.

The registry is a type: a new network joins by its config's place in `AnyConfig`.
"""

from ginio.models.airio import AirIoConfig as AirIoConfig
from ginio.models.canonical import CanonicalConfig as CanonicalConfig
from ginio.models.eqnio import EqNioConfig as EqNioConfig
from ginio.models.imunet import ImuNetConfig as ImuNetConfig
from ginio.models.recurrent import RecurrentConfig as RecurrentConfig
from ginio.models.resnet1d import ResNet1dConfig as ResNet1dConfig
from ginio.models.ronin import RoninConfig as RoninConfig
from ginio.models.temporal import TemporalConfig as TemporalConfig

AnyConfig = (
    TemporalConfig
    | RecurrentConfig
    | CanonicalConfig
    | ResNet1dConfig
    | AirIoConfig
    | EqNioConfig
    | ImuNetConfig
    | RoninConfig
)
