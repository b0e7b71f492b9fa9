"""Run an expert in every env of a cell, attempt after attempt, and turn what happened into episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from experts.contract import Action, Expert
from pipeline import __version__
from pipeline.engine import Engine
from pipeline.reasons import failure_reasons
from pipeline.schema import FPS
from pipeline.sim.cell import Cell, Observation
from pipeline.store import Episode, episode_id
from pipeline.success import GRASPED_M, Judge
from pipeline.tasks import HOME_TOLERANCE_RAD, PART_DROP_M, Task
from randomization.draws import Draws, draw_episode
from randomization.seeds import episode_seed

CONTACT_HEALTH = (
    "penetration_m",
    "stray_penetration_m",
    "pad_penetration_m",
    "fixture_force_n",
    "pad_force_n",
    "held_speed_m_s",
    "contacts",
)
"""Signals whose largest value is stored with an episode."""

PACKAGES = ("isaaclab", "newton", "warp-lang", "mujoco", "numpy", "scipy", "torch", "gym-hil")


@dataclass
class _Running:
    """What one env is doing."""

    attempt: int
    seed: int
    draws: Draws
    first: int
    home_distance_rad: float


@dataclass
class _Step:
    """All envs at one control step: before, commanded, and earned."""

    observation: Observation
    action: Action
    command: np.ndarray
    reward: np.ndarray = field(default_factory=lambda: np.empty(0))
    success: np.ndarray = field(default_factory=lambda: np.empty(0))


def record(
    cell: Cell,
    expert: Expert,
    engine: Engine,
    run_seed: int,
    attempts: Sequence[int],
    commit: Callable[[Episode], None],
    extra_draws: Mapping[str, Any] | None = None,
    beat: Callable[[Sequence[int]], None] = lambda _: None,
) -> None:
    """Record attempts, each env taking the next one when it is free.

    Args:
        cell: an open cell; its envs are reset one by one, the others going on.
        expert: for as many envs as the cell has.
        engine: recorded with every episode.
        run_seed: with the task and the attempt it fixes every draw.
        attempts: numbers of the attempts to make.
        commit: called with every finished episode, successful or not.
        extra_draws: recorded among the draws (faults of negative controls).
        beat: called before every reset and every control step with the attempts that are under way.
    """
    recorder = _Recorder(cell, expert, engine, run_seed, list(attempts), extra_draws or {}, beat)
    while recorder.busy:
        for episode in recorder.advance():
            commit(episode)


class _Recorder:
    def __init__(
        self,
        cell: Cell,
        expert: Expert,
        engine: Engine,
        run_seed: int,
        attempts: list[int],
        extra_draws: Mapping[str, Any],
        beat: Callable[[Sequence[int]], None] = lambda _: None,
    ) -> None:
        self._cell, self._expert, self._engine = cell, expert, engine
        self._task: Task = cell.task
        self._run_seed, self._waiting, self._extra = run_seed, attempts, extra_draws
        self._beat = beat
        self._running: list[_Running | None] = [None] * cell.num_envs
        self._judge = Judge(cell.task, cell.num_envs)
        self._history: list[_Step] = []
        self._now = 0
        self._reasons = failure_reasons(expert)
        self._versions = {"demomill": __version__, **{name: version(name) for name in PACKAGES}}
        self._observation = self._fill(list(range(cell.num_envs)))

    @property
    def busy(self) -> bool:
        return any(running is not None for running in self._running)

    def _tell(self) -> None:
        self._beat([running.attempt for running in self._running if running is not None])

    def _fill(self, env_ids: list[int]) -> Observation:
        """Start waiting attempts in free envs; envs without one stop being simulated."""
        starting = env_ids[: len(self._waiting)]
        for env_id in env_ids[len(starting) :]:
            self._running[env_id] = None
        for env_id in starting:
            attempt = self._waiting.pop(0)
            seed = episode_seed(self._run_seed, self._task.id, attempt)
            draws = draw_episode(seed, self._task.family, self._task.start_ranges, self._task.competence_ranges)
            self._running[env_id] = _Running(attempt, seed, draws, self._now, 0.0)
        self._tell()
        self._cell.set_active([running is not None for running in self._running])
        drawn = [running.draws for i in starting if (running := self._running[i])]
        if starting:
            self._cell.reset(starting, [draws.start for draws in drawn])
        observation = self._cell.observe()
        if starting:
            view, ids = observation.view, np.asarray(starting)
            self._expert.reset(view, drawn, starting)
            self._judge.reset(ids, view.held_pos_m, view.held_quat_xyzw)
            away = self._cell.home_distance_rad(observation)
            for env_id in starting:
                running = self._running[env_id]
                assert running is not None
                running.home_distance_rad = float(away[env_id])
                if away[env_id] > HOME_TOLERANCE_RAD:
                    raise RuntimeError(f"env {env_id} starts {away[env_id]:.3f} rad from home after a reset")
        return observation

    def advance(self) -> list[Episode]:
        """One control step of every env; returns the episodes that ended with it."""
        self._tell()
        before = self._observation
        action = self._expert.act(before.view)
        command = self._cell.step(action, before)
        after = self._cell.observe()
        reward = after.judged_by(self._judge)
        self._history.append(_Step(before, action, command, reward, self._judge.success.copy()))
        self._now += 1
        faults = self._cell.faults(after)
        ended, episodes = [], []
        for env_id, running in enumerate(self._running):
            if running is None:
                continue
            reason = self._reason_to_stop(env_id, running, action, after, faults[env_id])
            if reason is not None:
                episodes.append(self._episode(env_id, running, reason, after))
                ended.append(env_id)
        self._observation = self._fill(ended) if ended else after
        self._forget()
        return episodes

    def _reason_to_stop(
        self, env_id: int, running: _Running, action: Action, after: Observation, fault: str | None
    ) -> str | None:
        """``""`` when the expert has finished, the name of a failure, or None to go on."""
        if fault is not None:
            return fault.replace(" ", "_")
        if action.failure[env_id] is not None:
            return str(action.failure[env_id])
        if after.view.held_pos_m[env_id, 2] < -PART_DROP_M:
            return "dropped"
        if action.done[env_id]:
            return "" if self._judge.success[env_id] else str(self._judge.broken_limit[env_id] or "not_seated")
        if self._now - running.first >= round(self._task.timeout_s * FPS):
            return "time_out"
        return None

    def _episode(self, env_id: int, running: _Running, reason: str, after: Observation) -> Episode:
        if reason and reason not in self._reasons:
            raise RuntimeError(
                f"{reason!r} is no failure that {type(self._expert).__name__} lists in `failures`: add it"
            )
        steps = self._history[len(self._history) - (self._now - running.first) :]
        frames = _frames(steps, env_id)
        contact = _contact(steps, after, env_id)
        phase = frames["phase"]
        return Episode(
            id=episode_id(self._task.id, self._run_seed, running.attempt),
            task=self._task.id,
            run_seed=self._run_seed,
            attempt=running.attempt,
            seed=running.seed,
            draws={**running.draws.to_dict(), **self._extra},
            outcome="failure" if reason else "success",
            reason=reason or None,
            failed_phase=self._expert.phases[int(phase[-1])] if reason else None,
            length=len(steps),
            phases=self._expert.phases,
            phase_spans=tuple(_spans(phase, self._expert.phases)),
            bodies=self._cell.bodies,
            contact={
                **contact,
                "home_distance_rad": running.home_distance_rad,
                "score": float(self._judge.score[env_id]),
            },
            frames=frames,
            versions=self._versions,
            engine={**self._engine.to_dict(), "substeps": self._engine.substeps * self._task.refinement},
            env_index=env_id,
        )

    def _forget(self) -> None:
        """Drop the history that no running episode needs."""
        firsts = [running.first for running in self._running if running is not None]
        del self._history[: len(self._history) - (self._now - min(firsts, default=self._now))]


def _frames(steps: list[_Step], env_id: int) -> dict[str, np.ndarray]:
    def column(get: Callable[[Observation], np.ndarray]) -> np.ndarray:
        return np.stack([get(step.observation)[env_id] for step in steps])

    length = len(steps)
    done = np.zeros(length, bool)
    done[-1] = True
    signals = [step.observation.signals for step in steps]
    contact = np.stack(
        [np.array([s.fixture_force_n[env_id], s.penetration_m[env_id], *s.pad_force_n[env_id]]) for s in signals]
    )
    return {
        "observation.state": np.concatenate(
            [column(lambda o: o.view.joint_pos_rad), column(lambda o: o.view.finger_closed)[:, None]], 1
        ),
        "action": np.stack([step.command[env_id] for step in steps]),
        "observation.joint_vel": column(lambda o: o.view.joint_vel_rad_s),
        "observation.eef_pos": column(lambda o: o.view.tool_pos_m),
        "observation.eef_quat": column(lambda o: o.view.tool_quat_xyzw),
        "observation.wrist_wrench": column(lambda o: o.view.wrist_wrench),
        "next.reward": np.array([step.reward[env_id] for step in steps]),
        "next.done": done,
        "next.success": np.array([step.success[env_id] for step in steps]),
        "phase": np.array([step.action.phase[env_id] for step in steps]),
        "privileged.held_pose": np.concatenate(
            [column(lambda o: o.view.held_pos_m), column(lambda o: o.view.held_quat_xyzw)], 1
        ),
        "privileged.fixed_pose": np.concatenate(
            [column(lambda o: o.view.fixed_pos_m), column(lambda o: o.view.fixed_quat_xyzw)], 1
        ),
        "privileged.stand_pose": column(lambda o: o.stand_pose),
        "privileged.contact": contact,
        "bodies": column(lambda o: o.body_poses).reshape(length, -1),
    }


def _contact(steps: list[_Step], after: Observation, env_id: int) -> dict[str, float]:
    """Extremes over the episode; penetration of what is neither fixture nor pad from the grasp on, as judged."""
    observations = [*(step.observation for step in steps), after]
    height = np.array([o.view.held_pos_m[env_id, 2] for o in observations])
    grasped = np.logical_or.accumulate(height - height[0] > GRASPED_M)
    signals = [o.signals for o in observations]
    found = {f"max_{name}": np.array([getattr(s, name)[env_id].max() for s in signals]) for name in CONTACT_HEALTH}
    found["max_stray_penetration_m"] = found["max_stray_penetration_m"] * grasped
    found["max_wrist_force_n"] = np.linalg.norm([s.wrist_wrench[env_id, :3] for s in signals], axis=1)
    return {name: float(values.max()) for name, values in found.items()}


def _spans(phase: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    starts = np.flatnonzero(np.r_[True, phase[1:] != phase[:-1]])
    ends = np.r_[starts[1:], len(phase)]
    return [
        {"phase": names[int(phase[start])], "start": int(start), "end": int(end)}
        for start, end in zip(starts, ends, strict=True)
    ]
