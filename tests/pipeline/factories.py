"""Small, valid episodes with plausible motion, and run folders with tiny videos whose pixels name their frame."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.schema import FEATURES, FPS, body_feature
from pipeline.store import Episode, Run, episode_id, read_meta
from pipeline.tasks import HOME_JOINTS_RAD, PEG_LENGTH_M, Task, get_task
from pipeline.video import encode
from randomization.seeds import episode_seed, generator

PHASES = ("hover", "grasp", "lift", "transport", "insert", "release")
BODIES = ("panda_hand", "held", "fixed", "stand")
CAMERAS = ("front", "wrist")

_DOWN_XYZW = (1.0, 0.0, 0.0, 0.0)
_UPRIGHT_XYZW = (0.0, 0.0, 0.0, 1.0)
_BITS = {"episode": 12, "frame": 14, "camera": 6}
_BLOCK_PX = 8
_BLOCKS = (4, 8)


def make_episode(
    task_id: str = "peg_round_8mm",
    attempt: int = 0,
    *,
    run_seed: int = 7,
    length: int = 30,
    reason: str | None = None,
    env_index: int = 0,
) -> Episode:
    """Make an episode of at least 12 rows; like a recorded one, a pure function of its arguments.

    Args:
        reason: named failure; the part then stays in its stand. None makes a success.
    """
    task = get_task(task_id)
    seed = episode_seed(run_seed, task_id, attempt)
    offsets = generator(seed, "start").uniform(-1.0, 1.0, 4)
    start = dict(zip(("held_x_m", "held_y_m", "fixed_x_m", "fixed_y_m"), (offsets * 0.05).tolist(), strict=True))
    starts = np.linspace(0, length, len(PHASES) + 1).astype(int)
    spans = [
        {"phase": name, "start": int(a), "end": int(b)}
        for name, a, b in zip(PHASES, starts[:-1], starts[1:], strict=True)
    ]
    values = _frames(task, start, starts, length, seed, succeeds=reason is None)
    frames = {f.key: f.check(values[f.key], length) for f in (*FEATURES, body_feature(BODIES))}
    return Episode(
        id=episode_id(task_id, run_seed, attempt),
        task=task_id,
        run_seed=run_seed,
        attempt=attempt,
        seed=seed,
        draws={"start": start, "competence": {"grasp_dwell_steps": int(starts[2] - starts[1])}},
        outcome="success" if reason is None else "failure",
        reason=reason,
        failed_phase=None if reason is None else "grasp",
        length=length,
        phases=PHASES,
        phase_spans=tuple(spans),
        bodies=BODIES,
        contact={
            "max_penetration_m": float(frames["privileged.contact"][:, 1].max()),
            "max_fixture_force_n": float(frames["privileged.contact"][:, 0].max()),
        },
        frames=frames,
        versions={"demomill": "0.1.0", "mujoco": "3.12.0"},
        engine={"device": "cpu", "substeps": 4},
        env_index=env_index,
    )


def write_run(root: Path, episodes: Iterable[Episode], *, cameras: Sequence[str] = CAMERAS, look: str = "plain") -> Run:
    """Commit episodes to a run folder and give each its painted videos; no cameras, no videos."""
    run = Run.open(root, {"run_seed": 7})
    for number, episode in enumerate(episodes):
        folder = run.commit(episode)
        for index, camera in enumerate(cameras):
            encode(folder / f"{look}.{camera}.mp4", painted(number, episode.length, index), FPS)
    return run


def painted(episode: int, frames: int, camera: int = 0) -> Iterator[NDArray[np.uint8]]:
    """Pictures (32, 64, 3) of black and white blocks that spell episode, frame and camera."""
    rows, columns = _BLOCKS
    for frame in range(frames):
        word, width = 0, 0
        for value, bits in zip((episode, frame, camera), _BITS.values(), strict=True):
            word, width = word | value << width, width + bits
        blocks = np.array([word >> bit & 1 for bit in range(width)], dtype=np.uint8).reshape(rows, columns) * 255
        yield np.repeat(np.kron(blocks, np.ones((_BLOCK_PX, _BLOCK_PX), np.uint8))[..., None], 3, axis=2)


def read_paint(image: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Episode, frame and camera that a decoded picture of :func:`painted` spells."""
    rows, columns = _BLOCKS
    levels = image.reshape(rows, _BLOCK_PX, columns, _BLOCK_PX, 3).mean(axis=(1, 3, 4))
    word = sum(1 << bit for bit, level in enumerate(levels.reshape(-1)) if level > 127)
    values = []
    for bits in _BITS.values():
        values.append(word & (1 << bits) - 1)
        word >>= bits
    return values[0], values[1], values[2]


def _frames(
    task: Task, start: dict[str, float], starts: NDArray[np.int_], length: int, seed: int, *, succeeds: bool
) -> dict[str, NDArray[np.generic]]:
    step = np.arange(length)
    rng = generator(seed, "motion")
    progress = 0.5 - 0.5 * np.cos(np.pi * step / (length - 1))
    swing = rng.uniform(0.05, 0.3, 7)
    joints = np.array(HOME_JOINTS_RAD) + swing * np.sin(np.pi * progress)[:, None] + rng.normal(0, 1e-4, (length, 7))
    closed = ((step >= starts[1]) & (step < starts[5])).astype(float)

    stand = np.array(task.held_pos_m) + (start["held_x_m"], start["held_y_m"], 0.0)
    fixed = np.array(task.fixed_pos_m) + (start["fixed_x_m"], start["fixed_y_m"], 0.0)
    seat = fixed + task.seat.offset_m
    carry = np.interp(step, (starts[2], starts[4], length - 1), (0.0, 0.9, 1.0))[:, None]
    height = 0.1 * np.sin(np.pi * carry) * (0.0, 0.0, 1.0)
    path = stand + carry * (seat - stand) + height
    held = path if succeeds else np.broadcast_to(stand, path.shape)
    tool = path + (0.0, 0.0, PEG_LENGTH_M)
    in_fixture = (held[:, :2] == seat[:2]).all(axis=1) if not succeeds else step >= starts[4]
    pads = np.outer(closed, (20.0, 20.0)) * succeeds

    state = np.column_stack((joints, closed))
    return {
        "observation.state": state,
        "action": np.vstack((state[1:], state[-1:])),
        "observation.joint_vel": np.gradient(joints, 1.0 / FPS, axis=0),
        "observation.eef_pos": tool,
        "observation.eef_quat": np.tile(_DOWN_XYZW, (length, 1)),
        "observation.wrist_wrench": rng.normal(0, 0.2, (length, 6)),
        "next.reward": np.diff(progress, prepend=0.0) * succeeds,
        "next.done": step == length - 1,
        "next.success": (step >= length - task.seat.hold_steps) & succeeds,
        "phase": np.searchsorted(starts[1:-1], step, side="right"),
        "privileged.held_pose": _poses(held, length),
        "privileged.fixed_pose": _poses(fixed, length),
        "privileged.stand_pose": _poses(stand, length),
        "privileged.contact": np.column_stack((8.0 * in_fixture, 1e-5 * in_fixture, pads)),
        "bodies": np.hstack(
            (
                np.hstack((tool, np.tile(_DOWN_XYZW, (length, 1)))),
                _poses(held, length),
                _poses(fixed, length),
                _poses(stand, length),
            )
        ),
    }


def _poses(position: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.hstack((np.broadcast_to(position, (length, 3)), np.tile(_UPRIGHT_XYZW, (length, 1))))


def verdict_table(run: Run, dropped: str = "") -> pd.DataFrame:
    """Verdicts that keep every success but one."""
    metas = [read_meta(folder) for folder in run.folders()]
    return pd.DataFrame(
        {
            "episode_id": [meta["id"] for meta in metas],
            "task": [meta["task"] for meta in metas],
            "content_hash": [meta["content_hash"] for meta in metas],
            "verdict": ["keep" if meta["outcome"] == "success" and meta["id"] != dropped else "drop" for meta in metas],
        }
    )
