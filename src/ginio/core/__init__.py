"""The nouns that flow between stages."""

from ginio.core.interfaces import Frontend as Frontend
from ginio.core.interfaces import Network as Network
from ginio.core.interfaces import NetworkConfig as NetworkConfig
from ginio.core.interfaces import Symmetry as Symmetry
from ginio.core.measurement import Covariance as Covariance
from ginio.core.measurement import Measurement as Measurement
from ginio.core.measurement import Quantity as Quantity
from ginio.core.recording import ImuSequence as ImuSequence
from ginio.core.recording import Recording as Recording
from ginio.core.recording import Trajectory as Trajectory
from ginio.core.window import Representation as Representation
from ginio.core.window import Window as Window
from ginio.core.window import cut as cut
from ginio.core.window import represent as represent
