"""The rows of the paper's NanoBench tables: which run is which row, and what the paper prints.

Runs are named as in `ginio.presets.NANOBENCH_STUDY`. The paper's remounting was done with a Fetch
robot, ours with the flights of NanoBench, so those two columns compare robots beside networks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ginio.evaluation.frame_errors import ANGLES_DEG


@dataclass(frozen=True, slots=True)
class Row:
    """One network of a table."""

    run: str
    label: str
    law: str = ""
    """What it is equivariant to."""
    seen: str = ""
    """The frame of its windows."""
    paper: Mapping[str, float] = field(default_factory=dict[str, float])
    """What the paper prints, by our name of the figure."""


def _main(run: str, label: str, law: str, seen: str, ate: float, so3: float) -> Row:
    return Row(run, label, law, seen, {"ID/ID": ate, "ID/SO(3) vectors": so3})


MAIN = (
    _main("airio", "AirIO (no att.)", "none", "body", 5.579, 5.679),
    _main("airio-attitude", "AirIO (with att.)", "none", "body+att.", 1.205, 1.302),
    _main("ginio-a-reduced", "GINIO-A (no att.)", "SO(3)", "body", 1.430, 1.430),
    _main("ginio-a-attitude", "GINIO-A (with att.)", "SO(3)", "body+att.", 1.045, 1.045),
    _main("resnet1d", "ResNet1D", "none", "body", 0.645, 0.710),
    _main("eqnio-o2", "EqNIO O(2)", "O(2)", "gravity-aligned", 0.828, 1.267),
    _main("ginio-e", "GINIO-E", "SO(3)", "gravity-aligned", 0.785, 0.785),
    _main("ginio-rd", "GINIO-RD", "SO(3)", "body", 0.581, 0.581),
    _main("ginio-rs", "GINIO-RS", "SO(3)", "body+LFA", 0.789, 0.789),
)

AUGMENTATION = tuple(
    Row(f"{run}{suffix}", f"{label}{shown}", law, seen)
    for run, label, law, seen in (
        ("airio", "AirIO (no att.)", "none", "body"),
        ("airio-attitude", "AirIO (with att.)", "none", "body+att."),
        ("resnet1d", "ResNet1D", "none", "body"),
        ("imunet", "IMUNet", "none", "gravity-aligned"),
        ("ronin", "RoNIN ResNet18", "none", "gravity-aligned"),
        ("eqnio-o2", "EqNIO O(2)", "O(2)", "gravity-aligned"),
        ("ginio-rd", "GINIO-RD", "SO(3)", "body"),
    )
    for suffix, shown in (("", ""), ("-90", " + 90° aug."), ("-so3", " + SO(3) aug."))
)

CAPACITY = (
    Row("airio", "AirIO", "none", "body", {"ID/ID": 5.579}),
    Row("ginio-a", "GINIO-A original", "SO(3)", "body", {"ID/ID": 1.502}),
    Row("ginio-a-reduced", "GINIO-A reduced", "SO(3)", "body", {"ID/ID": 1.430}),
    Row("ginio-a-reduced-paper", "GINIO-A reduced, without departures", "SO(3)", "body"),
    Row("ginio-a-causal", "GINIO-A original, causal", "SO(3)", "body"),
    Row("airio-attitude", "AirIO", "none", "body+att.", {"ID/ID": 1.205}),
    Row("ginio-a-whole-attitude", "GINIO-A original", "SO(3)", "body+att.", {"ID/ID": 1.062}),
    Row("ginio-a-attitude", "GINIO-A reduced", "SO(3)", "body+att.", {"ID/ID": 1.045}),
    Row("ginio-rd", "GINIO-RD", "SO(3)", "body", {"ID/ID": 0.581}),
    Row("ginio-rd-paper", "GINIO-RD, without departures", "SO(3)", "body"),
)


def _covariance(run: str, label: str, *paper: float | None) -> Row:
    names = (
        "velocity_rmse",
        "nll",
        "nees",
        "cov95",
        "covariance_law_error",
        "mean_law_error",
    )
    return Row(
        run, label, paper={n: p for n, p in zip(names, paper, strict=False) if p is not None}
    )


COVARIANCE = (
    _covariance("ginio-rd-lfa-mse", "diagonal, MSE", 0.284, None, None, None, None, 0.453),
    _covariance("ginio-rd-lfa", "diagonal, NLL", 0.303, -1.741, 2.959, 0.915, 5.52e-1, 0.317),
    _covariance("ginio-rs-mse", "spectral, MSE", 0.234, None, None, None, None, 7.24e-4),
    _covariance("ginio-rs", "spectral, NLL", 0.260, -1.875, 2.974, 0.837, 4.34e-4, 4.30e-4),
    _covariance("given-diagonal", "diagonal, on the mean of spectral, MSE"),
    _covariance("given-spectral", "spectral, on the mean of spectral, MSE"),
)

ON_GIVEN_MEAN = COVARIANCE[-2:]
"""Two heads on one mean, diagonal and spectral."""


def _sweep(run: str, label: str, seen: str, *ate: float) -> Row:
    paper = {f"{angle:g}°": value for angle, value in zip(ANGLES_DEG, ate, strict=bool(ate))}
    return Row(run, label, seen=seen, paper=paper)


GRAVITY_ERROR = (
    _sweep("resnet1d-gravity", "ResNet1D", "gravity-aligned", 0.66, 0.66, 0.66, 0.67, 0.68),
    _sweep(
        "resnet1d-gravity-so3",
        "ResNet1D + SO(3) aug.",
        "gravity-aligned",
        *(1.20, 1.21, 1.22, 1.24, 1.26),
    ),
    _sweep("eqnio-o2", "EqNIO O(2)", "gravity-aligned", 0.93, 0.96, 1.02, 1.10, 1.18),
    _sweep(
        "eqnio-o2-so3",
        "EqNIO O(2) + SO(3) aug.",
        "gravity-aligned",
        *(0.96, 0.97, 0.99, 1.02, 1.06),
    ),
    _sweep("ginio-rs-gravity", "GINIO-R", "gravity-aligned", 0.56, 0.58, 0.58, 0.59, 0.59),
    _sweep("ginio-e", "GINIO-E", "gravity-aligned"),
    _sweep("imunet", "IMUNet", "gravity-aligned"),
    _sweep("ronin", "RoNIN ResNet18", "gravity-aligned"),
    _sweep("ginio-rs", "GINIO-RS", "body+LFA"),
    _sweep("ginio-rd", "GINIO-RD", "body"),
    _sweep("resnet1d", "ResNet1D", "body"),
    _sweep("airio-attitude", "AirIO (with att.)", "body+att."),
    _sweep("ginio-a-attitude", "GINIO-A (with att.)", "body+att."),
    _sweep("airio", "AirIO (no att.)", "body"),
    _sweep("ginio-a-reduced", "GINIO-A (no att.)", "body"),
)
RELATIVE_ERROR = (
    _sweep("resnet1d-lfa", "ResNet1D", "body+LFA", 0.64, 0.64, 0.65, 0.67, 0.70),
    _sweep("resnet1d-lfa-so3", "ResNet1D + SO(3) aug.", "body+LFA", 1.21, 1.22, 1.23, 1.23, 1.27),
    _sweep("ginio-rd-lfa", "GINIO-RD", "body+LFA", 0.55, 0.57, 0.58, 0.59, 0.60),
    _sweep("ginio-rs", "GINIO-RS", "body+LFA"),
)


def _remount(run: str, label: str, *ate: float) -> Row:
    names = ("nominal", "TC1", "TC2", "unseen")
    return Row(run, label, paper=dict(zip(names, ate, strict=bool(ate))))


REMOUNT = (
    _remount("resnet1d", "ResNet1D", 0.105, 7.798, 8.505, 8.152),
    _remount("ginio-rd", "GINIO-RD", 0.095, 0.226, 0.764, 0.495),
    _remount("resnet1d-90", "ResNet1D + 90° aug.", 1.751, 1.477, 2.792, 2.135),
    _remount("ginio-rd-90", "GINIO-RD + 90° aug.", 0.540, 0.589, 0.567, 0.578),
    _remount("resnet1d-so3", "ResNet1D + SO(3) aug.", 0.542, 0.580, 0.575, 0.578),
    _remount("ginio-rd-so3", "GINIO-RD + SO(3) aug.", 0.108, 0.265, 0.721, 0.493),
    _remount("ginio-rs", "GINIO-RS"),
    _remount("ginio-e", "GINIO-E"),
    _remount("airio", "AirIO (no att.)"),
    _remount("airio-so3", "AirIO (no att.) + SO(3) aug."),
    _remount("airio-attitude", "AirIO (with att.)"),
    _remount("ginio-a-reduced", "GINIO-A (no att.)"),
    _remount("ginio-a-attitude", "GINIO-A (with att.)"),
    _remount("eqnio-o2", "EqNIO O(2)"),
    _remount("eqnio-o2-so3", "EqNIO O(2) + SO(3) aug."),
    _remount("imunet", "IMUNet"),
    _remount("ronin", "RoNIN ResNet18"),
)

PAIRS = (
    ("ginio-a-reduced", "airio", "ate_se3"),
    ("ginio-a-attitude", "airio-attitude", "ate_se3"),
    ("ginio-a-reduced", "ginio-a", "ate_se3"),
    ("ginio-a-reduced", "ginio-a-reduced-paper", "ate_se3"),
    ("ginio-rd", "ginio-rd-paper", "ate_se3"),
    ("ginio-rd", "resnet1d", "ate_se3"),
    ("ginio-rd", "resnet1d-so3", "ate_se3"),
    ("ginio-rd", "eqnio-o2", "ate_se3"),
    ("ginio-e", "eqnio-o2", "ate_se3"),
    ("ginio-rs", "resnet1d-lfa", "ate_se3"),
    ("ginio-rs", "ginio-rd-lfa", "ate_se3"),
    ("given-spectral", "given-diagonal", "nll"),
)
"""What is compared recording by recording: the first network less the second, by a metric."""
