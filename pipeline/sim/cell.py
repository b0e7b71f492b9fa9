"""One process's assembly cell: reset envs to drawn starts, look, act. All arrays are host numpy, env-local."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from isaaclab.app import launch_simulation

from experts.contract import Action, View
from pipeline.assets.robot import ARM_JOINT_NAMES, DRIVER_JOINT_NAMES, GRIPPER_BASE, PAD_BODIES
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.sim.contacts import ContactProbe, Signals
from pipeline.sim.env import AssemblyEnv, assembly_env_cfg
from pipeline.sim.native import NewtonNativeManager
from pipeline.sim.servo import Servo
from pipeline.sim.warp_contacts import WarpContacts
from pipeline.success import Judge
from pipeline.tasks import HOME_JOINTS_RAD, Task
from randomization.draws import StartPose

TOOL_CENTRE_M = 0.145
"""From the gripper base along its approach axis to the point between the fingertips."""

FINGER_RANGE_RAD = np.pi / 4
DROP_IN_M = 0.0002
"""A part starts this far above what it rests on."""

WORKSPACE_M = 1.5
"""A part further than this from the robot base has left the cell."""


@dataclass(frozen=True)
class Observation:
    """Everything measured at one control step.

    Attributes:
        view: what the expert sees.
        stand_pose: (N, 7); the held part's start where a task has no stand.
        body_poses: (N, B, 7) pose of every moving body, metres and xyzw.
        signals: contact and wrist signals of the control step that led here.
    """

    view: View
    stand_pose: np.ndarray
    body_poses: np.ndarray
    signals: Signals

    @property
    def held_speed_m_s(self) -> np.ndarray:
        """Linear speed of the held part, (N,)."""
        return np.linalg.norm(self.view.held_vel_m_s, axis=1)

    def judged_by(self, judge: Judge) -> np.ndarray:
        """Show a judge the state after a control step; returns the step's reward (N,)."""
        view, signals = self.view, self.signals
        return judge.update(
            view.held_pos_m,
            view.held_quat_xyzw,
            view.fixed_pos_m,
            view.fixed_quat_xyzw,
            self.held_speed_m_s,
            view.tool_pos_m,
            view.finger_closed,
            signals.penetration_m,
            signals.stray_penetration_m,
            signals.fixture_force_n,
            signals.held_speed_m_s,
        )


def start_poses(task: Task, start: StartPose) -> Mapping[str, np.ndarray]:
    """Pose (7,) of each part of a task, env-local metres and xyzw, for drawn offsets."""
    held = np.add(task.held_pos_m, (start.held_x_m, start.held_y_m, 0.0))
    fixed = np.add(task.fixed_pos_m, (start.fixed_x_m, start.fixed_y_m, 0.0))
    rest = task.geometry["base"] if task.has_stand else 0.0
    poses = {
        "held": _upright(held + (0.0, 0.0, rest + DROP_IN_M), start.held_yaw_rad),
        "fixed": _upright(fixed, start.fixed_yaw_rad),
    }
    if task.has_stand:
        poses["stand"] = _upright(held, start.held_yaw_rad)
    return poses


def _upright(pos: np.ndarray, yaw: float) -> np.ndarray:
    return np.array([*pos, 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])


@contextmanager
def open_cell(task: Task, num_envs: int, engine: Engine, fault: Fault | None = None) -> Iterator["Cell"]:
    """Start the simulator with one task; only one cell can be open in a process."""
    torch.set_num_threads(1)
    cfg = assembly_env_cfg(task, num_envs, engine, fault)
    with launch_simulation(cfg):
        env = AssemblyEnv(cfg)
        try:
            yield Cell(task, env, engine, fault or Fault())
        finally:
            env.close()


class Cell:
    """N parallel envs of one task.

    Attributes:
        bodies: names behind the body axis of :attr:`Observation.body_poses`.
    """

    def __init__(self, task: Task, env: AssemblyEnv, engine: Engine, fault: Fault) -> None:
        self.task, self.num_envs, self._fault = task, env.num_envs, fault
        self._env, self._engine = env, engine
        self._robot = env.scene["robot"]
        self._roles = tuple(env.start_poses)
        self._arm = self._robot.find_joints(list(ARM_JOINT_NAMES), preserve_order=True)[0]
        self._drivers = self._robot.find_joints(list(DRIVER_JOINT_NAMES), preserve_order=True)[0]
        self._gripper = self._robot.find_bodies(GRIPPER_BASE)[0][0]
        self.bodies = (*self._robot.body_names, *self._roles)
        self._servo = Servo(self.num_envs, engine.device)
        for env_id in range(self.num_envs):
            self._place(env_id, StartPose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        env.reset()
        self._solver = NewtonNativeManager.solver()
        reader: type[ContactProbe | WarpContacts] = ContactProbe if engine.native else WarpContacts
        self._contacts = reader(self._solver, "held", "fixed", PAD_BODIES, GRIPPER_BASE)
        self._signals = Signals.silent(self.num_envs)
        self._check_gravity()

    def reset(self, env_ids: list[int], starts: list[StartPose]) -> None:
        """Put the robot of these envs at home and the parts at their drawn poses; other envs are untouched."""
        for env_id, start in zip(env_ids, starts, strict=True):
            self._place(env_id, start)
        ids = torch.as_tensor(env_ids, device=self._engine.device)
        self._env.reset(env_ids=ids)
        self._servo.reset(np.asarray(env_ids))
        self._signals.clear(np.asarray(env_ids))
        self._contacts.clear(np.asarray(env_ids))

    def set_active(self, active: list[bool]) -> None:
        """Choose the envs that are simulated; the others stand still and cost nothing on the native engine."""
        if self._engine.native:
            self._solver.active = np.asarray(active)

    def _place(self, env_id: int, start: StartPose) -> None:
        if self._fault.fixed_yaw_rad is not None:
            start = replace(start, fixed_yaw_rad=self._fault.fixed_yaw_rad)
        for role, pose in start_poses(self.task, start).items():
            self._env.place(env_id, role, pose)

    def observe(self) -> Observation:
        """Measure every env."""
        data, origin = self._robot.data, self._env.scene.env_origins.cpu().numpy()
        links = _host(data.body_link_pose_w).reshape(self.num_envs, -1, 7)
        links[..., :3] -= origin[:, None]
        poses = {role: _host(self._env.scene[role].data.root_link_pose_w) for role in self._roles}
        for pose in poses.values():
            pose[:, :3] -= origin
        joint_pos, joint_vel = _host(data.joint_pos), _host(data.joint_vel)
        tool_quat = links[:, self._gripper, 3:]
        offset = _approach_axis(tool_quat) * TOOL_CENTRE_M
        signals = copy.deepcopy(self._signals)
        view = View(
            held_pos_m=poses["held"][:, :3],
            held_quat_xyzw=poses["held"][:, 3:],
            held_vel_m_s=_host(self._env.scene["held"].data.root_link_lin_vel_w),
            fixed_pos_m=poses["fixed"][:, :3],
            fixed_quat_xyzw=poses["fixed"][:, 3:],
            tool_pos_m=links[:, self._gripper, :3] + offset,
            tool_quat_xyzw=tool_quat,
            joint_pos_rad=joint_pos[:, self._arm],
            joint_vel_rad_s=joint_vel[:, self._arm],
            jacobian=self._jacobian(offset),
            finger_closed=np.clip(joint_pos[:, self._drivers].mean(1) / FINGER_RANGE_RAD, 0.0, 1.0),
            wrist_wrench=signals.wrist_wrench,
            pad_force_n=signals.pad_force_n,
            contact_force_n=signals.fixture_force_n,
        )
        bodies = np.concatenate([links, np.stack([poses[role] for role in self._roles], 1)], 1)
        stand = poses.get("stand", poses["held"])
        return Observation(view, stand, bodies, signals)

    def _jacobian(self, offset: np.ndarray) -> np.ndarray:
        """Of the tool centre, (N, 6, 7), linear rows first, world axes."""
        rows = _host(self._robot.data.body_link_jacobian_w)[:, self._gripper - 1][:, :, self._arm]
        rows[:, :3] += np.cross(rows[:, 3:], offset[:, :, None], axis=1)
        return rows

    def step(self, action: Action, observation: Observation) -> np.ndarray:
        """Command every env for one control step; returns the recorded command (N, 8)."""
        view = observation.view
        command, fingers = self._servo.command(
            action.tool_pos_m,
            action.tool_quat_xyzw,
            action.grip,
            view.tool_pos_m,
            view.tool_quat_xyzw,
            view.jacobian,
            view.joint_pos_rad,
        )
        joints = np.concatenate([command[:, :7], fingers[:, None], fingers[:, None]], 1)
        self._env.step(torch.as_tensor(joints, device=self._engine.device))
        self._signals = self._contacts.take(self._solver)
        return command

    def faults(self, observation: Observation) -> list[str | None]:
        """What makes each env's physics untrustworthy since its reset, or None."""
        found = self._contacts.faults(self._solver)
        bodies = observation.body_poses
        for env_id in range(self.num_envs):
            if found[env_id] is None and not np.isfinite(bodies[env_id]).all():
                found[env_id] = "not finite"
            if found[env_id] is None and np.abs(bodies[env_id, :, :3]).max() > WORKSPACE_M:
                found[env_id] = "left the cell"
        return found

    def _check_gravity(self) -> None:
        gravity = self._env.sim.cfg.gravity
        if not np.allclose(gravity, (0.0, 0.0, -9.81)):
            raise RuntimeError(f"gravity is {gravity}, expected (0, 0, -9.81)")

    def home_distance_rad(self, observation: Observation) -> np.ndarray:
        """L2 distance (N,) of the arm from its home pose."""
        return np.linalg.norm(observation.view.joint_pos_rad - np.array(HOME_JOINTS_RAD), axis=1)


def _host(array: object) -> np.ndarray:
    return array.torch.cpu().numpy().astype(np.float64)  # type: ignore[attr-defined]


def _approach_axis(quat_xyzw: np.ndarray) -> np.ndarray:
    """Third column of the rotation, (N, 3)."""
    x, y, z, w = quat_xyzw.T
    return np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], 1)
