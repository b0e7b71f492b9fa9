"""A worker process without a simulator, for tests of everything around it."""

import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.engine import Engine
from pipeline.record import Request
from pipeline.store import Run
from tests.pipeline.factories import make_episode

TASKS = ("peg_round_8mm", "peg_round_4mm")

WORKER = """#!{python}
import json, os, shutil, sys, time
from pathlib import Path

assert sys.argv[1:4] == ["-P", "-m", "pipeline.sim.worker"]
shard = json.loads(sys.argv[4])
print("simulating", shard["task"])
with os.fdopen(int(sys.argv[5]), "w", buffering=1) as events:
    tell = lambda event, **fields: events.write(json.dumps({{"event": event, **fields}}) + "\\n")
    if message := os.environ.get("FAKE_ERROR"):
        tell("error", message=message, state="refused")
        sys.exit(2)
    if os.environ.get("FAKE_START") == "hang":
        time.sleep(60)
    if os.environ.get("FAKE_START") == "crash":
        sys.exit(9)
    tell("ready")
    for number, attempt in enumerate(shard["attempts"]):
        tell("beat", attempts=shard["attempts"][number : number + shard["num_envs"]])
        if attempt == int(os.environ.get("FAKE_HANG", -1)):
            time.sleep(60)
        if number == int(os.environ.get("FAKE_CRASH_AFTER", -1)):
            os.kill(os.getpid(), int(os.environ.get("FAKE_SIGNAL", 9)))
        name = f"episodes/{{shard['task']}}/{{shard['task']}}-s{{shard['run_seed']}}-{{attempt:05d}}"
        shutil.copytree(Path({studio!r}, name), Path(shard["root"], name))
        meta = json.loads(Path({studio!r}, name, "episode.json").read_text())
        tell("episode", **{{key: meta[key] for key in ("attempt", "outcome", "reason")}})
    tell("done", core_seconds=2.0)
"""


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The episodes that fake workers hand in; every fourth attempt is a failure."""
    run = Run.open(tmp_path_factory.mktemp("record") / "studio", {})
    for task in TASKS:
        for attempt in range(8):
            reason = "missed_grasp" if attempt % 4 == 3 else None
            run.commit(make_episode(task, attempt, run_seed=3, reason=reason, length=12))
    return run.root


@pytest.fixture
def fake_worker(studio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are started with an interpreter that runs :data:`WORKER` whatever it is asked to."""
    script = tmp_path / "worker"
    script.write_text(WORKER.format(python=sys.executable, studio=str(studio)))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., Request]:
    def make(**changes: object) -> Request:
        request = Request(tmp_path / "run", TASKS, 5, run_seed=3, engine=Engine())
        return replace(request, **changes)  # type: ignore[arg-type]

    return make
