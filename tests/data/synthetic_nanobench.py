"""Small files in the published layout of NanoBench, with a motion that is known exactly."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from scipy.spatial.transform import Rotation

Axes = Float64[ndarray, "row 3"]

G_MPS2 = 9.80665
UNIX_START_S = 1772426634.140748739
STILL_S = 2.0
HEADER = (
    "t,px,py,pz,qx,qy,qz,qw,roll,pitch,yaw,vx,vy,vz,wx_vicon,wy_vicon,wz_vicon,"
    "imu_acc_x,imu_acc_y,imu_acc_z,imu_gyro_x,imu_gyro_y,imu_gyro_z,"
    "motor_motor_m1,motor_motor_m2,motor_motor_m3,motor_motor_m4,"
    "est_stateEstimate_x,est_stateEstimate_y,est_stateEstimate_z,"
    "est_stateEstimate_vx,est_stateEstimate_vy,est_stateEstimate_vz,"
    "est_stateEstimate_ax,est_stateEstimate_ay,est_stateEstimate_az,"
    "att_stateEstimate_roll,att_stateEstimate_pitch,att_stateEstimate_yaw,"
    "att_stateEstimate_qx,att_stateEstimate_qy,att_stateEstimate_qz,att_stateEstimate_qw,"
    "sp_ctrltarget_x,sp_ctrltarget_y,sp_ctrltarget_z,sp_ctrltarget_yaw,"
    "pid_controller_roll,pid_controller_pitch,pid_controller_yaw,pid_controller_cmd_thrust,"
    "pwr_pm_vbat"
)
COLUMNS: Sequence[str] = HEADER.split(",")
FIRST_IMU, LAST_IMU = COLUMNS.index("imu_acc_x"), COLUMNS.index("imu_gyro_z")


@dataclass(frozen=True)
class Motion:
    """What a sensor does that rocks in place for two seconds and then flies as well."""

    t: Float64[ndarray, " row"]
    euler: Axes
    """Roll, pitch and yaw, turned about z, then y, then x."""
    R_ws: Float64[ndarray, "row 3 3"]
    gyr_s: Axes
    p_w: Axes
    v_w: Axes
    a_w: Axes
    acc_s: Axes


def motion(rows: int) -> Motion:
    t = 0.01 * np.arange(rows)
    size, rate = np.array([0.1, 0.15, 0.6]), np.array([2.3, 1.7, 0.9])
    euler = size * np.sin(t[:, None] * rate)
    euler_rate = size * rate * np.cos(t[:, None] * rate)
    R_ws = Rotation.from_euler("ZYX", euler[:, ::-1]).as_matrix()
    size, rate = np.array([0.4, 0.3, 0.2]), np.array([1.1, 1.6, 0.8])
    phase = np.maximum(t - STILL_S, 0)[:, None] * rate
    rise = 1 - np.cos(phase)
    a_w = 2 * size * rate**2 * (np.cos(phase) * rise + np.sin(phase) ** 2)
    return Motion(
        t=t,
        euler=euler,
        R_ws=R_ws,
        gyr_s=body_rate(euler, euler_rate),
        p_w=size * rise**2,
        v_w=2 * size * rate * np.sin(phase) * rise,
        a_w=a_w,
        acc_s=np.einsum("tji,tj->ti", R_ws, a_w + np.array([0, 0, G_MPS2])),
    )


def body_rate(euler: Axes, euler_rate: Axes) -> Axes:
    """Angular rate in the sensor frame from roll, pitch, yaw and their derivatives."""
    (sin_roll, sin_pitch, _), (cos_roll, cos_pitch, _) = np.sin(euler).T, np.cos(euler).T
    roll_rate, pitch_rate, yaw_rate = euler_rate.T
    return np.stack(
        (
            roll_rate - sin_pitch * yaw_rate,
            cos_roll * pitch_rate + sin_roll * cos_pitch * yaw_rate,
            cos_roll * cos_pitch * yaw_rate - sin_roll * pitch_rate,
        ),
        axis=1,
    )


def table(rows: int, *, tail: int = 0, lead: int = 0, start_s: float = 0.0) -> ndarray:
    """All columns of a flight, the ends of the onboard ones replaced by straight lines.

    Args:
        rows: of the whole file.
        tail: rows at the end that continue the onboard columns in a straight line.
        lead: rows at the start that do so backward.
        start_s: of the clock, after ``UNIX_START_S``; it makes contents differ.
    """
    m = motion(rows)
    q_xyzw = Rotation.from_matrix(m.R_ws).as_quat()
    one = np.ones((rows, 1))
    flying = m.t[:, None] > STILL_S
    vicon = (m.p_w, q_xyzw, m.euler, m.v_w, m.gyr_s)
    imu = (m.acc_s / G_MPS2, m.gyr_s)
    estimate = (m.p_w, m.v_w, m.a_w / G_MPS2, np.rad2deg(m.euler) * [1, -1, 1], q_xyzw)
    control = (m.p_w, 0 * one, 100 * m.euler, 36000.0 * flying)
    onboard = (*imu, 30000 * flying * np.ones(4), *estimate, *control, 4.1 - 0.01 * m.t[:, None])
    data = np.hstack((UNIX_START_S + start_s + m.t[:, None], *vicon, *onboard))
    ramps, end = data[:, FIRST_IMU:], rows - tail
    if tail:
        step = ramps[end - 1] - ramps[end - 2]
        ramps[end:] = ramps[end - 1] + np.arange(1, tail + 1)[:, None] * step
    if lead:
        step = ramps[lead + 1] - ramps[lead]
        ramps[:lead] = ramps[lead] - np.arange(lead, 0, -1)[:, None] * step
    return data


def csv(data: ndarray) -> bytes:
    """A table in the publisher's format: nine decimals, Unix line ends."""
    rows = [",".join(f"{value:.9f}" for value in row) for row in data]
    return "\n".join([HEADER, *rows, ""]).encode()


def write(path: Path, content: bytes, *, metadata: bool = False) -> Path:
    """Content at a path, gzipped if its name says so, with the publisher's metadata beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    if metadata:
        stem = path.name.removesuffix(".gz").removesuffix(".csv")
        text = f"trajectory_id: {stem.rpartition('_rep')[0]}\nrepetition: 1\n"
        path.with_name(f"{stem}_metadata.yaml").write_text(text, encoding="utf-8")
    return path
