"""Quality control of 1,355 episodes, other tools, a bare reader: each a process. Run as ``python -m bench.quality``.

The episodes are recorded ones, each copied with its own small offset of the joints, and exported without videos. Other
tools run in environments of their own (``uv tool run``), which are made before the clock starts.
"""

import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from bench.processes import Cost, measure
from pipeline.engine import choose_engine
from pipeline.export.files import write_data
from pipeline.export.layout import all_columns, info
from pipeline.export.metadata import write_episodes, write_json_files, write_tasks
from pipeline.export.selection import Choice, count_by_task, select
from pipeline.record import Request, record
from pipeline.store import Episode, Run, episode_id, read_episode
from pipeline.tasks import get_task

TASKS = ("peg_round_4mm", "peg_round_8mm", "peg_round_12mm", "peg_round_16mm")
RECORDED_OF_EACH = 16
EPISODES = 1355
OFFSET_RAD = 0.002
REPEATS = 3
PEERS = {
    "robovet 0.2.2 score": ("robovet==0.2.2", "robovet", "score"),
    "deepen-grade 0.4.1 grade": ("deepen-grade==0.4.1", "deepen", "grade"),
    "rdq 0.3.4 check": ("rdq==0.3.4", "rdq", "check"),
    "rdq 0.3.4 rank": ("rdq==0.3.4", "rdq", "rank"),
    "lerobot-doctor 0.2.0 check": ("lerobot-doctor==0.2.0", "lerobot-doctor", "check"),
    "kalanos 0.8.2 grade": ("kalanos==0.8.2", "kalanos", "grade"),
}
_READ = """
import sys
import pyarrow.parquet as pq
names = {"observation.state", "action", "observation.eef_pos", "observation.eef_quat", "privileged.held_pose", "phase",
         "privileged.fixed_pose", "episode_index", "frame_index", "index", "task_index", "timestamp"}
pq.read_table(sys.argv[1], columns=sorted(names))
"""


def main() -> None:
    """Record, multiply, export, measure."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        record(Request(place / "recorded", TASKS, RECORDED_OF_EACH, 1, choose_engine("cpu")))
        rows = _export(_multiply(place / "recorded", place / "run"), place / "dataset")
        dataset, log = str(place / "dataset"), place / "log"
        demomill = str(Path(sys.executable).with_name("demomill"))
        read = _fastest([sys.executable, "-c", _READ, f"{dataset}/data"], log)
        ours = _fastest([demomill, "qc", dataset, "--out", str(place / "qc"), "--no-report"], log)
        peers = {name: _peer(command, dataset, log) for name, command in PEERS.items()}
    result = {"episodes": EPISODES, "rows": rows, "read": asdict(read), "ours": asdict(ours), "peers": peers}
    print("\nRESULT " + json.dumps(result))


def _multiply(recorded: Path, root: Path) -> Run:
    sources = [read_episode(folder) for folder in Run(recorded).folders()]
    run = Run.open(root, {"run_seed": 1})
    for attempt, episode in enumerate(islice(cycle(e for e in sources if e.outcome == "success"), EPISODES)):
        run.commit(_moved(episode, attempt))
    return run


def _moved(episode: Episode, attempt: int) -> Episode:
    rng = np.random.default_rng(attempt)
    frames = dict(episode.frames)
    for key in ("observation.state", "action"):
        frames[key] = frames[key].copy()
        frames[key][:, :7] += rng.normal(0.0, OFFSET_RAD, 7).astype(np.float32)
    return replace(episode, id=episode_id(episode.task, 1, attempt), attempt=attempt, frames=frames)


def _export(run: Run, root: Path) -> int:
    """Write the run as a dataset without cameras; returns the number of rows."""
    kept, columns = select(run, None, Choice(cameras=())), all_columns()
    tasks = [get_task(task) for task in count_by_task(kept)]
    root.mkdir()
    files, statistics = write_data(root, kept, columns, {task.id: index for index, task in enumerate(tasks)})
    rows = sum(episode.length for episode in kept)
    write_episodes(root, kept, files)
    write_tasks(root, tasks)
    description = info({}, columns, Counter(e.split for e in kept), frames=rows, tasks=len(tasks))
    write_json_files(root, description, statistics, {})
    return rows


def _fastest(command: list[str], log: Path) -> Cost:
    costs = [measure(command, log) for _ in range(REPEATS)]
    if any(cost.code for cost in costs):
        sys.exit(f"{command[0]} failed: {log.read_text()[-2000:]}")
    return min(costs, key=lambda cost: cost.wall_s)


def _peer(command: tuple[str, str, str], dataset: str, log: Path) -> dict[str, float] | str:
    """What another tool costs, or why it cannot be told; its exit code says what it thinks of the dataset."""
    package, program, verb = command
    run = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "--from", package, program]
    if measure([*run, "--help"], log).code:
        return "not installed: " + (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1][:80]
    cost = measure([*run, verb, dataset], log)
    return "took more than ten minutes" if cost.code == 124 else asdict(cost)


if __name__ == "__main__":
    main()
