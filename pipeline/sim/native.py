"""Isaac Lab worlds on a CPU, stepped by MuJoCo's C engine.

Newton keeps its multi-world MuJoCo Warp model and data; on the CPU their arrays are host memory. This solver
replaces the one call that advances them: each world owns an ``MjModel`` and an ``MjData``, a thread pool steps
them (``mj_step`` releases the GIL), and state goes in and out through the Warp arrays.
"""

import copy
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import warp as wp
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg
from isaaclab_newton.physics.mjwarp_manager import NewtonMJWarpManager
from newton import Model, ModelFlags
from newton.solvers import SolverMuJoCo
from scipy.spatial.transform import Rotation

PER_WORLD_FIELDS = (
    "qpos0 qpos_spring body_pos body_quat body_ipos body_iquat body_mass body_subtreemass body_inertia "
    "body_invweight0 body_gravcomp jnt_solref jnt_solimp jnt_pos jnt_axis jnt_stiffness jnt_range jnt_actfrcrange "
    "jnt_margin dof_armature dof_damping dof_invweight0 dof_frictionloss dof_solimp dof_solref geom_solmix "
    "geom_solref geom_solimp geom_size geom_rbound geom_pos geom_quat geom_friction geom_margin geom_gap site_pos "
    "site_quat eq_solref eq_solimp eq_data actuator_gainprm actuator_biasprm actuator_dynprm actuator_ctrlrange "
    "actuator_forcerange actuator_actrange actuator_gear"
).split()
"""Model fields that Newton keeps per world and may change at run time."""

INPUTS = ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
STATES = ("qpos", "qvel", "qacc")

MAX_SPEED = 100.0
"""Speed, m/s of a part or rad/s of a joint, above which a world counts as diverged."""

MAX_SPIN_RAD_S = 5000.0
"""The same for the spin of a free part: a light peg squeezed by frictionless pads turns at a thousand."""

_WARNINGS = {
    mujoco.mjtWarning.mjWARN_INERTIA: "singular inertia",
    mujoco.mjtWarning.mjWARN_CONTACTFULL: "contact overflow",
    mujoco.mjtWarning.mjWARN_CNSTRFULL: "constraint overflow",
    mujoco.mjtWarning.mjWARN_BADQPOS: "bad position",
    mujoco.mjtWarning.mjWARN_BADQVEL: "bad velocity",
    mujoco.mjtWarning.mjWARN_BADQACC: "bad acceleration",
}

Probe = Callable[[int, mujoco.MjModel, mujoco.MjData], None]


class NativeWorlds(SolverMuJoCo):
    """``SolverMuJoCo`` whose worlds are advanced by ``mj_step``.

    Args:
        model: the Newton model.
        native_substeps: MuJoCo steps in one call of :meth:`step`.
        native_probes: how often in one call the ``probe`` looks at each world.
        native_threads: threads in the pool.
        **kwargs: as for ``SolverMuJoCo``.

    Attributes:
        probe: called as ``probe(world, model, data)`` from the pool; None for no call.
        active: (N,) which worlds are stepped.
        faults: per world, what went wrong since its last reset, or None.
    """

    def __init__(
        self, model: Model, native_substeps: int, native_probes: int, native_threads: int, **kwargs: Any
    ) -> None:
        if native_substeps % native_probes:
            raise ValueError(f"{native_probes} probes do not divide {native_substeps} substeps")
        self._worlds: list[tuple[mujoco.MjModel, mujoco.MjData]] = []
        super().__init__(model, **{**kwargs, "use_mujoco_cpu": False})
        self._chunk, self._probes = native_substeps // native_probes, native_probes
        self._substeps = native_substeps
        # MuJoCo would write its warnings to a file in the working folder; they are counted per world.
        mujoco.set_mju_user_warning(lambda _message: None)
        self._worlds = [self._new_world() for _ in range(self.mjw_data.nworld)]
        self._inputs, self._states = (
            [self._wires(w, names) for w in range(len(self._worlds))] for names in (INPUTS, STATES)
        )
        self._speed_limit = speed_limit(self.mj_model)
        self._pool = ThreadPoolExecutor(native_threads, thread_name_prefix="mj_step")
        self._seen_warnings = [data.warning.number.copy() for _, data in self._worlds]
        self.probe: Probe | None = None
        self.active: np.ndarray = np.ones(len(self._worlds), bool)
        self.faults: list[str | None] = [None] * len(self._worlds)
        self._copy_model_fields()

    def _new_world(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        model = copy.copy(self.mj_model)
        # Kinematic bodies carry an armature of 1e10, which breaks the scaling of a constraint island.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
        # A diverged world must be seen, not silently set back to its initial state.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        # Compiled shortcuts for bodies whose inertia lies along their own axes, which Newton turns afterwards.
        model.body_sameframe[:] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        model.stat.meaninertia = 0.1
        return model, mujoco.MjData(model)

    def _wires(self, world: int, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """MuJoCo's and Newton's memory of the same quantities of a world."""
        pairs = [(getattr(self._worlds[world][1], n), getattr(self.mjw_data, n).numpy()[world]) for n in names]
        return [(ours, newtons.reshape(ours.shape)) for ours, newtons in pairs if ours.size]

    def world(self, index: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Model and data of one world."""
        return self._worlds[index]

    def notify_model_changed(self, flags: ModelFlags | int) -> None:
        """Pass a change of the Newton model on to every world."""
        super().notify_model_changed(flags)
        self._copy_model_fields()

    def _copy_model_fields(self) -> None:
        for name in PER_WORLD_FIELDS if self._worlds else ():
            values = getattr(self.mjw_model, name).numpy()
            for world, (model, _) in enumerate(self._worlds):
                target = getattr(model, name)
                target[...] = values[world % len(values)].reshape(target.shape)
        gravity = self.mjw_model.opt.gravity.numpy().reshape(-1, 3)
        for world, (model, _) in enumerate(self._worlds):
            model.opt.gravity[:] = gravity[world % len(gravity)]
            fit_bounding_volumes(model)

    def reset(self, state: Any, world_mask: wp.array | None = None, flags: Any = None) -> None:
        """Forget everything that the engine remembers of the masked worlds; Newton writes their state anew."""
        super().reset(state, world_mask, flags)
        mask = slice(None) if world_mask is None else world_mask.numpy()[: len(self._worlds)]
        for world in np.arange(len(self._worlds))[mask]:
            model, data = self._worlds[world]
            mujoco.mj_resetData(model, data)
            self.faults[world] = None
            self._seen_warnings[world] = data.warning.number.copy()

    def step(self, state_in: Any, state_out: Any, control: Any, contacts: Any, dt: float) -> None:
        """Advance all worlds by ``dt`` seconds in ``native_substeps`` steps."""
        for model, _ in self._worlds:
            model.opt.timestep = dt / self._substeps
        super().step(state_in, state_out, control, contacts, dt)

    def _mujoco_warp_step(self) -> None:
        list(self._pool.map(self._advance, np.flatnonzero(self.active)))

    def _advance(self, world: int) -> None:
        model, data = self._worlds[world]
        for ours, newtons in self._inputs[world]:
            np.copyto(ours, newtons)
        for _ in range(self._probes):
            mujoco.mj_step(model, data, nstep=self._chunk)
            if self.probe is not None:
                self.probe(world, model, data)
        self.faults[world] = self.faults[world] or self._fault(world, data)
        for ours, newtons in self._states[world]:
            np.copyto(newtons, ours, casting="same_kind")

    def _fault(self, world: int, data: mujoco.MjData) -> str | None:
        if not (math.isfinite(float(data.qvel.sum())) and math.isfinite(float(data.qpos.sum()))):
            return "not finite"
        counts = data.warning.number.copy()
        new, self._seen_warnings[world] = counts > self._seen_warnings[world], counts
        told = (text for warning, text in _WARNINGS.items() if new[warning])
        return next(told, "diverged" if (np.abs(data.qvel) > self._speed_limit).any() else None)


def speed_limit(model: mujoco.MjModel) -> np.ndarray:
    """Largest credible speed of every degree of freedom, (nv,)."""
    limit = np.full(model.nv, MAX_SPEED)
    for free in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        first = model.jnt_dofadr[free]
        limit[first + 3 : first + 6] = MAX_SPIN_RAD_S
    return limit


def fit_bounding_volumes(model: mujoco.MjModel) -> None:
    """Fit every body's bounding-volume tree to its geoms as they are now.

    Newton compiles bodies with their centres of mass moved by a millimetre and moves them back in the compiled model,
    which leaves the volumes, given relative to the centres of mass, a millimetre off: contacts are missed.
    """
    for body in range(model.nbody):
        first, count = model.body_bvhadr[body], model.body_bvhnum[body]
        rotation = Rotation.from_quat(model.body_iquat[body], scalar_first=True).inv()
        for node in range(count - 1, -1, -1):
            geom, children = model.bvh_nodeid[first + node], model.bvh_child[first + node]
            if geom >= 0:
                turn = (rotation * Rotation.from_quat(model.geom_quat[geom], scalar_first=True)).as_matrix()
                middle, half = np.split(model.geom_aabb[geom].astype(float), 2)
                centre = rotation.apply(model.geom_pos[geom] - model.body_ipos[body]) + turn @ middle
                half = np.abs(turn) @ half
            else:
                boxes = model.bvh_aabb[first + children]
                low, high = (boxes[:, :3] - boxes[:, 3:]).min(0), (boxes[:, :3] + boxes[:, 3:]).max(0)
                centre, half = (low + high) / 2, (high - low) / 2
            model.bvh_aabb[first + node] = (*centre, *half)


class NewtonNativeManager(NewtonMJWarpManager):
    """Newton manager that builds :class:`NativeWorlds`.

    Isaac Lab tells its back ends apart by how the manager's name starts.
    """

    @classmethod
    def solver(cls) -> NativeWorlds:
        """The solver of the running simulation."""
        return cls._solver

    @classmethod
    def _create_solver(cls, model: Model, solver_cfg: "NativeSolverCfg") -> NativeWorlds:
        kwargs = cls._filter_solver_kwargs(SolverMuJoCo, solver_cfg)
        kwargs.pop("ls_parallel", None)
        return NativeWorlds(
            model,
            native_substeps=solver_cfg.native_substeps,
            native_probes=solver_cfg.native_probes,
            native_threads=solver_cfg.native_threads,
            **kwargs,
        )


@configclass
class NativeSolverCfg(MJWarpSolverCfg):
    """Solver settings of :class:`NativeWorlds`."""

    class_type: type[NewtonNativeManager] | str = NewtonNativeManager
    native_substeps: int = 24
    """MuJoCo steps in one physics step of Isaac Lab."""
    native_probes: int = 6
    """Looks at each world's contacts in one physics step; divides ``native_substeps``."""
    native_threads: int = 2
    """Threads that step the worlds."""
