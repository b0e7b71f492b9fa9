"""Whole runs, by worker processes."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import UserError
from pipeline.render.contact_sheet import contact_sheet
from pipeline.render.episodes import Progress, render_run
from pipeline.store import Run
from pipeline.video import probe, read_frames
from tests.pipeline.factories import make_episode, write_run
from tests.pipeline.render.recordings import needs_opengl, robot_episode, write_robot_run

DEADLINE_S = 60.0


def videos(root: Path) -> dict[str, str]:
    """Digest of every video of a run."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.glob("episodes/*/*/[!.]*.mp4"))
    }


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three episodes, of which one was damaged before the others were rendered."""
    root = tmp_path_factory.mktemp("rendered") / "run"
    run = write_robot_run(root, 3)
    frames = run.folder("peg_round_8mm", "peg_round_8mm-s7-00001") / "frames.parquet"
    frames.write_bytes(frames.read_bytes()[:-100])
    events: list[Progress] = []
    summary = render_run(root, workers=2, progress=events.append)
    assert summary.rendered == ("peg_round_8mm-s7-00000", "peg_round_8mm-s7-00002")
    assert list(summary.failed) == ["peg_round_8mm-s7-00001"]
    assert "damaged episode" in summary.failed["peg_round_8mm-s7-00001"]
    assert sorted(event.kind for event in events) == ["failed", "rendered", "rendered"]
    return root


@needs_opengl
def test_every_row_has_its_frame_and_the_robot_moves(rendered: Path) -> None:
    for name in ("peg_round_8mm-s7-00000", "peg_round_8mm-s7-00002"):
        for camera in ("front", "wrist"):
            path = rendered / "episodes" / "peg_round_8mm" / name / f"plain.{camera}.mp4"
            frames = list(read_frames(path))
            assert len(frames) == probe(path).frames == 12
            assert np.abs(np.subtract(frames[0], frames[5], dtype=np.int16)).mean() > 2


@needs_opengl
def test_the_same_episodes_give_the_same_bytes_and_none_is_rendered_twice(rendered: Path, tmp_path: Path) -> None:
    shutil.copytree(rendered, tmp_path / "run", ignore=shutil.ignore_patterns("plain.*"))
    again = render_run(tmp_path / "run", workers=1)
    assert len(again.rendered) == 2
    assert videos(tmp_path / "run") == videos(rendered)
    assert len(videos(rendered)) == 4
    ids = [*again.rendered]
    assert render_run(tmp_path / "run", ids).to_dict() | {"seconds": 0} == {
        "rendered": 0,
        "skipped": 2,
        "failed": {},
        "renderer": "mujoco",
        "note": None,
        "seconds": 0,
    }


@needs_opengl
def test_two_looks_of_an_episode_differ_and_are_made_once(tmp_path: Path) -> None:
    root = tmp_path / "run"
    run = write_robot_run(root, 2)
    first = render_run(root, look="varied", looks_per_episode=1, cameras=("front",))
    assert len(first.rendered) == 2
    made = videos(root)
    render_run(root, look="varied", looks_per_episode=2, cameras=("front",))
    assert {name: digest for name, digest in videos(root).items() if name in made} == made
    assert len(set(videos(root).values())) == 4
    again = render_run(root, look="varied", looks_per_episode=2, cameras=("front",))
    assert (len(again.rendered), len(again.skipped)) == (0, 2)
    described = json.loads((run.folders()[0] / "varied-1.json").read_text())["settings"]["look"]
    assert described["draws"]["exposure_gain"] == described["sensor"]["gain"]


@needs_opengl
def test_contact_sheet_shows_each_episode_at_its_moments(rendered: Path, tmp_path: Path) -> None:
    names = ["peg_round_8mm-s7-00002", "peg_round_8mm-s7-00000"]
    path = contact_sheet(rendered, names, tmp_path / "sheet.png", columns=("start", "insert", "mesh"))
    with Image.open(path) as picture:
        sheet = np.asarray(picture.convert("RGB"))
    assert sheet.shape[1] > 3 * 320
    assert sheet.shape[0] > 4 * 180
    assert (sheet == 255).all(-1).mean() < 0.6
    with pytest.raises(UserError, match="no episode 'nobody'"):
        contact_sheet(rendered, ["nobody"], path)


@needs_opengl
def test_a_killed_render_leaves_no_process_and_is_finished_by_the_next(tmp_path: Path) -> None:
    root = tmp_path / "run"
    run = write_robot_run(root, 2, length=30)
    code = f"from pipeline.render.episodes import render_run; render_run({str(root)!r}, workers=1)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        wait_until(lambda: any(root.glob("episodes/*/*/plain.front.mp4")))
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: free(run))
    assert render_run(root, workers=1).failed == {}
    assert len(videos(root)) == 4
    assert not list(root.glob("episodes/*/*/.plain*"))
    assert all(probe(path).frames == 30 for path in root.glob("episodes/*/*/*.mp4"))


def wait_until(met: object) -> None:
    end = time.monotonic() + DEADLINE_S
    while not met():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.05)


def free(run: Run) -> bool:
    """Whether no process, not even a worker that inherited it, holds the run's lock."""
    try:
        with run.lock():
            return True
    except UserError:
        return False


def test_without_opengl_newtons_camera_renders_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    run, events = write_robot_run(tmp_path / "run", 1), list[Progress]()
    with pytest.raises(UserError, match="apt-get install"):
        render_run(run.root, renderer="mujoco")
    summary = render_run(run.root, cameras=("wrist",), progress=events.append)
    assert summary.renderer == "newton"
    assert "apt-get install" in (summary.note or "")
    assert [event.kind for event in events] == ["note", "rendered"]
    (path,) = run.root.glob("episodes/*/*/plain.wrist.mp4")
    assert probe(path).frames == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episode_ids": ["peg_round_8mm-s7-0000"]}, "did you mean 'peg_round_8mm-s7-00000'"),
        ({"look": "plane"}, "did you mean 'plain'"),
        ({"cameras": ("side",)}, "unknown camera 'side'"),
        ({"cameras": ()}, "no camera"),
        ({"size": "640x480"}, "pictures are stored as 320x180 or 640x360"),
        ({"workers": 0}, "must be at least 1"),
        ({"renderer": "rtx"}, "take mujoco, which also runs on a graphics card, or newton"),
    ],
)
def test_bad_input_is_refused_before_anything_is_done(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    run = write_run(tmp_path / "run", [make_episode()], cameras=())
    with pytest.raises(UserError, match=message):
        render_run(run.root, **arguments)  # type: ignore[arg-type]


def test_a_run_that_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    run = Run.open(tmp_path / "run", {"run_seed": 7})
    run.commit(robot_episode())
    with run.lock(), pytest.raises(UserError, match="another demomill process"):
        render_run(run.root)
