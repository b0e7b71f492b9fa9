"""Recorded attempts: success, repeatability, resume after a kill, and controls that must not succeed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from experts.contract import Handicap
from experts.motion import heading
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.record import Recorded, Request, record
from pipeline.store import Episode, Run, read_episode
from pipeline.tasks import HOME_JOINTS_RAD, HOME_TOLERANCE_RAD

pytestmark = pytest.mark.sim

TASK, SEED, EPISODES = "peg_round_8mm", 1000, 6
SQUARE_PEGS = ("peg_square_4mm", "peg_square_8mm", "peg_square_12mm", "peg_square_16mm")
ROUND_PEGS = ("peg_round_4mm", "peg_round_8mm", "peg_round_12mm", "peg_round_16mm")
PEGS = (*ROUND_PEGS, *SQUARE_PEGS)


def _record(root: Path, episodes: int = EPISODES, num_envs: int = 8, threads: int = 2, **more: Any) -> Recorded:
    options = {"tasks": (TASK,), "run_seed": SEED, **more}
    return record(Request(root, episodes=episodes, num_envs=num_envs, engine=Engine(threads=threads), **options))


def _hashes(recorded: Recorded) -> dict[str, str]:
    return {meta["id"]: meta["content_hash"] for meta in recorded.episodes}


@pytest.fixture(scope="module")
def run_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with the attempts of :func:`recorded`."""
    return tmp_path_factory.mktemp("recorded") / "run"


@pytest.fixture(scope="module")
def recorded(run_root: Path) -> Recorded:
    """Six attempts, uninterrupted, in as many envs."""
    return _record(run_root)


@pytest.fixture(scope="module")
def episodes(run_root: Path, recorded: Recorded) -> list[Episode]:
    """Those attempts in full."""
    return [read_episode(folder) for folder in Run(run_root).folders()]


def test_the_expert_succeeds_within_the_limits(episodes: list[Episode]) -> None:
    assert [episode.reason for episode in episodes] == [None] * EPISODES
    for episode in episodes:
        assert episode.contact["max_penetration_m"] < 0.0005
        assert 0 < episode.contact["max_stray_penetration_m"] < 0.0005
        assert 0 < episode.contact["max_pad_penetration_m"] < 0.002
        assert 0 < episode.contact["max_fixture_force_n"] < 60.0
        assert 0 < episode.contact["max_held_speed_m_s"] < 3.0
        assert 5.0 < episode.contact["max_wrist_force_n"] < 60.0
        assert 5 < episode.contact["max_contacts"] < 60
        assert episode.frames["next.success"][-1]
        assert episode.contact["score"] == 1.0


def test_every_episode_starts_at_home(episodes: list[Episode]) -> None:
    for episode in episodes:
        start = episode.frames["observation.state"][0]
        assert np.linalg.norm(start[:7] - HOME_JOINTS_RAD) < HOME_TOLERANCE_RAD
        assert start[7] < 0.05


def test_start_poses_are_the_drawn_ones(episodes: list[Episode]) -> None:
    for episode in episodes:
        start = episode.draws["start"]
        fixed, held = (episode.frames[f"privileged.{part}_pose"][0] for part in ("fixed", "held"))
        assert fixed[:2] == pytest.approx([0.37 + start["fixed_x_m"], 0.07 + start["fixed_y_m"]], abs=1e-5)
        assert held[:2] == pytest.approx([0.37 + start["held_x_m"], -0.07 + start["held_y_m"]], abs=1e-5)
    starts = np.array([list(e.draws["start"].values()) for e in episodes])
    assert (np.ptp(starts[:, [0, 1, 3, 4]], axis=0) > 0.01).all()


def test_an_action_is_the_command_taken_from_its_row(episodes: list[Episode]) -> None:
    """The command leads the state of its own row, and the next row has moved towards it."""
    for episode in episodes:
        joints, targets = episode.frames["observation.state"][:, :7], episode.frames["action"][:, :7]
        behind = np.abs(targets[:-1] - joints[:-1]).sum()
        assert np.abs(targets[:-1] - joints[1:]).sum() < 0.7 * behind
        grip = episode.frames["action"][:, 7]
        assert set(np.unique(grip)) == {0.0, 1.0}
        closing = int(np.flatnonzero(grip)[0])
        opening = episode.frames["observation.state"][:, 7]
        assert opening[closing + 2] > opening[closing] + 0.02
        assert opening[closing] < 0.05


def test_phases_follow_one_another(episodes: list[Episode]) -> None:
    for episode in episodes:
        spans = episode.phase_spans
        assert spans[0]["phase"] == "hover"
        assert spans[-1]["phase"] == "hold"
        assert [span["start"] for span in spans[1:]] == [span["end"] for span in spans[:-1]]
        assert spans[-1]["end"] == episode.length
        for span in spans:
            rows = episode.frames["phase"][span["start"] : span["end"]]
            assert (rows == episode.phases.index(span["phase"])).all()


def test_motion_varies_between_episodes(episodes: list[Episode]) -> None:
    assert len({episode.length for episode in episodes}) > 1
    assert len({episode.content_hash() for episode in episodes}) == EPISODES


@pytest.mark.parametrize(("num_envs", "threads"), [(4, 1), (1, 2)])
def test_episodes_do_not_depend_on_envs_and_threads(
    recorded: Recorded, tmp_path: Path, num_envs: int, threads: int
) -> None:
    few = _record(tmp_path / "run", episodes=3 if num_envs == 1 else EPISODES, num_envs=num_envs, threads=threads)
    assert _hashes(few).items() <= _hashes(recorded).items()


def test_a_killed_run_resumes_to_the_same_episodes(recorded: Recorded, tmp_path: Path) -> None:
    root = tmp_path / "run"
    code = (
        "from pathlib import Path; from tests.pipeline.sim.test_recording import _record; "
        f"_record(Path({str(root)!r}), num_envs=2)"
    )
    victim = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while len(list(root.glob("episodes/*/*"))) < 2:
        assert victim.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    survived = len(Run(root).folders())
    assert 2 <= survived < EPISODES
    for folder in Run(root).folders():
        read_episode(folder)
    resumed = _record(root, num_envs=2)
    assert _hashes(resumed) == _hashes(recorded)
    assert resumed.new == EPISODES - survived
    assert not list(root.glob(".staging-*"))


def test_repeating_a_finished_run_does_nothing(run_root: Path, recorded: Recorded) -> None:
    files = {path: path.stat().st_mtime_ns for path in run_root.rglob("*.parquet")}
    again = _record(run_root)
    assert again.new == 0
    assert _hashes(again) == _hashes(recorded)
    assert {path: path.stat().st_mtime_ns for path in run_root.rglob("*.parquet")} == files


@pytest.mark.parametrize(
    ("control", "reasons"),
    [
        ({"fault": Fault(bore_narrowing_m=0.0004)}, {"jammed_at_mouth", "never_centred"}),
        (
            {"fault": Fault(pad_friction=0.0)},
            {"missed_grasp", "slipped_in_lift", "slipped_in_transport", "tipped_in_hand", "dropped", "left_the_cell"},
        ),
        ({"handicap": Handicap(seat_error_m=(0.004, 0.0))}, {"jammed_at_mouth", "never_centred", "tipped_in_hand"}),
    ],
    ids=["narrow-bore", "frictionless-pads", "hole-told-4-mm-off"],
)
def test_negative_controls_never_succeed(tmp_path: Path, control: dict[str, Any], reasons: set[str]) -> None:
    failed = _record(tmp_path / "run", episodes=8, **control)
    assert [meta["outcome"] for meta in failed.episodes] == ["failure"] * 8
    assert {meta["reason"] for meta in failed.episodes} <= reasons | {"force_over_limit", "penetration_over_limit"}
    assert all(meta["failed_phase"] for meta in failed.episodes)


def test_a_thin_square_peg_stands_still_and_does_not_turn_in_the_fingers(tmp_path: Path) -> None:
    """Flat faces meet over an area: on single contact points it rattles in the stand and pivots between the pads."""
    root = tmp_path / "run"
    _record(root, episodes=4, num_envs=4, tasks=("peg_square_4mm",))
    for episode in map(read_episode, Run(root).folders()):
        assert episode.outcome == "success", episode.reason
        assert episode.contact["max_pad_force_n"] < 60.0
        named = np.array(episode.phases)[episode.frames["phase"]]
        peg = episode.frames["privileged.held_pose"][:, 3:]
        in_hand = Rotation.from_quat(episode.frames["observation.eef_quat"]).inv() * Rotation.from_quat(peg)
        standing = np.abs(heading(peg)[np.isin(named, ["hover", "descend"])]).max()
        held = np.isin(named, ["microlift", "lift", "transport", "straighten", "align", "insert"])
        assert standing < 0.01
        assert np.ptp(heading(in_hand.as_quat()[held])) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("task", PEGS)
def test_success_rate(tmp_path: Path, task: str) -> None:
    rate = _record(tmp_path / "run", episodes=64, num_envs=16, tasks=(task,)).to_dict()["success_rate"]
    assert rate >= (0.90 if task == "peg_round_4mm" else 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("task", PEGS)
@pytest.mark.parametrize(
    "fault", [Fault(bore_narrowing_m=0.0004), Fault(pad_friction=0.0)], ids=["narrow-bore", "frictionless-pads"]
)
def test_faults_fail_every_size(tmp_path: Path, task: str, fault: Fault) -> None:
    failed = _record(tmp_path / "run", episodes=32, num_envs=16, tasks=(task,), fault=fault)
    assert failed.to_dict()["succeeded"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("task", SQUARE_PEGS)
def test_square_pegs_that_are_not_clocked_never_fit_a_turned_hole(tmp_path: Path, task: str) -> None:
    turned, blind = Fault(fixed_yaw_rad=0.25), Handicap(skill_off=True)
    failed = _record(tmp_path / "run", episodes=32, num_envs=16, tasks=(task,), fault=turned, handicap=blind).to_dict()
    assert failed["succeeded"] == 0
    assert failed["by_reason"]["jammed_at_mouth"] >= 24, "they arrive at the hole"


@pytest.mark.slow
@pytest.mark.parametrize("task", ["peg_round_8mm", "peg_square_8mm"])
def test_sixteen_four_and_one_env_record_the_same(tmp_path: Path, task: str) -> None:
    hashes = [
        _hashes(_record(tmp_path / str(envs), episodes=16, num_envs=envs, threads=threads, tasks=(task,)))
        for envs, threads in ((16, 2), (4, 1), (1, 2))
    ]
    assert hashes[0] == hashes[1] == hashes[2]


@pytest.mark.slow
def test_isaac_labs_own_stepping_of_the_same_scene_succeeds_too(tmp_path: Path) -> None:
    """What a GPU would run: MuJoCo Warp with the same configuration, expert, judge and contact signals."""
    ours = _record(tmp_path / "native", episodes=1).episodes[0]
    request = Request(tmp_path / "stock", (TASK,), 1, SEED, Engine(native=False), num_envs=1)
    theirs = record(request).episodes[0]
    assert theirs["outcome"] == ours["outcome"] == "success"
    assert theirs["contact"]["max_pad_force_n"] == pytest.approx(ours["contact"]["max_pad_force_n"], rel=0.2)
    assert 0 < theirs["contact"]["max_penetration_m"] < 0.0005
