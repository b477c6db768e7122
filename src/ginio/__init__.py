"""Neural inertial odometry that does not care how the IMU is mounted."""

from ginio.core import Covariance as Covariance
from ginio.core import ImuSequence as ImuSequence
from ginio.core import Measurement as Measurement
from ginio.core import Quantity as Quantity
from ginio.core import Recording as Recording
from ginio.core import Representation as Representation
from ginio.core import Symmetry as Symmetry
from ginio.core import Trajectory as Trajectory
from ginio.core import Window as Window
from ginio.core import cut as cut
from ginio.core import represent as represent
from ginio.runtime.zoo import load as load
from ginio.runtime.zoo import shipped as shipped

__version__ = "0.1.0.dev0"
