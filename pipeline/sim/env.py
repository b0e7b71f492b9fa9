"""The assembly cell as an Isaac Lab env: N worlds with the DROID robot, a table and one task's parts."""

from typing import Any

import isaaclab.sim as sim_utils
import numpy as np
import torch
from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.assets import ArticulationCfg, AssetBaseCfg, RigidObjectCfg
from isaaclab.envs import ManagerBasedEnv, ManagerBasedEnvCfg, mdp
from isaaclab.managers import EventTermCfg, ObservationGroupCfg, ObservationTermCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg

from pipeline.assets.robot import ARM_JOINT_NAMES, DRIVER_JOINT_NAMES
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.schema import FPS
from pipeline.sim.native import NativeSolverCfg
from pipeline.sim.usd import SceneAssets, scene_assets
from pipeline.tasks import HOME_JOINTS_RAD, Task

GRIPPER_CLOSED_RAD = 0.8
"""Driver angle commanded for a closed gripper; the finger joint's range of pi/4 lies within."""


FLAT_FAMILIES = ("peg_square",)
"""Families whose parts meet pads and blocks over flat faces: one contact point a pair would let them pivot on it."""


def _robot_cfg(assets: SceneAssets) -> ArticulationCfg:
    def drive(joints: list[str], stiffness: float, damping: float, effort: float, armature: float) -> Any:
        return ImplicitActuatorCfg(
            joint_names_expr=joints, stiffness=stiffness, damping=damping, effort_limit_sim=effort, armature=armature
        )

    return ArticulationCfg(
        prim_path="{ENV_REGEX_NS}/robot",
        spawn=sim_utils.UsdFileCfg(
            usd_path=str(assets.robot),
            joint_drive_props={"/.*": [sim_utils.UsdPhysicsDriveCfg()]},
            joint_drive_props_create_if_missing=True,
            ensure_drives_exist=True,
        ),
        init_state=ArticulationCfg.InitialStateCfg(
            joint_pos={
                **dict(zip(ARM_JOINT_NAMES, HOME_JOINTS_RAD, strict=True)),
                "(left|right)_(driver|coupler|spring_link|follower)_joint": 0.0,
            }
        ),
        actuators={
            "shoulder": drive(["joint[1-4]"], 4500.0, 450.0, 87.0, 0.1),
            "wrist": drive(["joint[5-7]"], 2000.0, 200.0, 12.0, 0.1),
            "fingers": drive(list(DRIVER_JOINT_NAMES), 60.0, 6.0, 2.0, 0.005),
            "linkage": drive([".*_(coupler|follower|spring_link)_joint"], 0.0, 0.0, 5.0, 0.001),
        },
    )


def _part_cfg(role: str, path: str, kinematic: bool) -> RigidObjectCfg:
    props = sim_utils.UsdPhysicsRigidBodyCfg(kinematic_enabled=True) if kinematic else None
    return RigidObjectCfg(
        prim_path="{ENV_REGEX_NS}/" + role,
        spawn=sim_utils.UsdFileCfg(usd_path=path, rigid_props=props),
    )


@configclass
class _SceneCfg(InteractiveSceneCfg):
    table: AssetBaseCfg = None
    robot: ArticulationCfg = None
    fixed: RigidObjectCfg = None
    held: RigidObjectCfg = None
    stand: RigidObjectCfg | None = None


@configclass
class _ActionsCfg:
    arm = mdp.JointPositionActionCfg(
        asset_name="robot", joint_names=list(ARM_JOINT_NAMES), use_default_offset=False, preserve_order=True
    )
    fingers = mdp.JointPositionActionCfg(
        asset_name="robot", joint_names=list(DRIVER_JOINT_NAMES), use_default_offset=False, preserve_order=True
    )


@configclass
class _ObservationsCfg:
    @configclass
    class _StateCfg(ObservationGroupCfg):
        joint_pos = ObservationTermCfg(func=mdp.joint_pos)

    policy: _StateCfg = _StateCfg()


def _place_parts(env: "AssemblyEnv", env_ids: torch.Tensor | slice) -> None:
    for role, poses in env.start_poses.items():
        part = env.scene[role]
        pose = poses[env_ids].clone()
        pose[:, :3] += env.scene.env_origins[env_ids]
        part.write_root_pose_to_sim_index(root_pose=pose, env_ids=env_ids)
        part.write_root_velocity_to_sim_index(root_velocity=torch.zeros_like(pose[:, :6]), env_ids=env_ids)


@configclass
class _EventsCfg:
    home = EventTermCfg(func=mdp.reset_scene_to_default, mode="reset", params={"reset_joint_targets": True})
    parts = EventTermCfg(func=_place_parts, mode="reset")


@configclass
class AssemblyEnvCfg(ManagerBasedEnvCfg):
    """Isaac Lab configuration of the cell; made by :func:`assembly_env_cfg`."""

    scene: _SceneCfg = _SceneCfg(num_envs=1, env_spacing=0.0)
    actions: _ActionsCfg = _ActionsCfg()
    observations: _ObservationsCfg = _ObservationsCfg()
    events: _EventsCfg = _EventsCfg()


def assembly_env_cfg(task: Task, num_envs: int, engine: Engine, fault: Fault | None = None) -> AssemblyEnvCfg:
    """Configure the cell.

    Worlds share one origin: they never meet, and float32 positions are then the same in every one of them.
    """
    assets = scene_assets(task, fault)
    cfg = AssemblyEnvCfg()
    cfg.scene = _SceneCfg(num_envs=num_envs, env_spacing=0.0)
    cfg.scene.table = AssetBaseCfg(
        prim_path="{ENV_REGEX_NS}/table", spawn=sim_utils.UsdFileCfg(usd_path=str(assets.table))
    )
    cfg.scene.robot = _robot_cfg(assets)
    cfg.scene.held = _part_cfg("held", str(assets.held), kinematic=False)
    cfg.scene.fixed = _part_cfg("fixed", str(assets.fixed), kinematic=True)
    if assets.stand is not None:
        cfg.scene.stand = _part_cfg("stand", str(assets.stand), kinematic=True)
    cfg.seed = 0
    cfg.decimation = 1
    cfg.sim.dt = 1.0 / FPS
    cfg.sim.render_interval = 1
    cfg.sim.device = engine.device
    cfg.sim.physics = _physics_cfg(engine, engine.substeps * task.refinement, task.family in FLAT_FAMILIES)
    return cfg


def _physics_cfg(engine: Engine, substeps: int, flat_faces: bool) -> NewtonCfg:
    settings: dict[str, Any] = {
        "njmax": 1000,
        "nconmax": 300,
        "cone": "elliptic",
        "impratio": 10.0,
        "integrator": "implicitfast",
        "iterations": 50,
        "ls_iterations": 50,
        "tolerance": 1e-8,
        "enable_multiccd": flat_faces,
    }
    if engine.native:
        solver = NativeSolverCfg(**settings, native_substeps=substeps, native_threads=engine.threads)
        physics = NewtonCfg(solver_cfg=solver, num_substeps=1)
    else:
        physics = NewtonCfg(solver_cfg=MJWarpSolverCfg(**settings), num_substeps=substeps)
    physics.use_cuda_graph = engine.device != "cpu"
    physics.default_shape_cfg.gap = 0.0
    return physics


class AssemblyEnv(ManagerBasedEnv):
    """Isaac Lab env of the assembly cell.

    Attributes:
        start_poses: role to (N, 7) pose, env-local metres and xyzw, that the next reset writes.
    """

    def __init__(self, cfg: AssemblyEnvCfg) -> None:
        roles = ("held", "fixed", *(("stand",) if cfg.scene.stand is not None else ()))
        identity = torch.tensor([0.4, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], device=cfg.sim.device)
        self.start_poses = {role: identity.repeat(cfg.scene.num_envs, 1) for role in roles}
        super().__init__(cfg)

    def place(self, env_id: int, role: str, pose: np.ndarray) -> None:
        """Set where a part of one env starts at its next reset; pose (7,) env-local metres, xyzw."""
        self.start_poses[role][env_id] = torch.as_tensor(pose, dtype=torch.float32)
