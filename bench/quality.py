"""Quality control of 1,355 episodes, other tools, a bare reader: each a process. Run as ``python -m bench.quality``.

The dataset is that of :mod:`bench.copies`. Other tools run in environments of their own (``uv tool run``), made before
the clock starts. This process stays small, for what it starts counts its memory as their own.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench.processes import Cost, measure

REPEATS = 3
PEERS = {
    "robovet 0.2.2 score": ("robovet==0.2.2", "robovet", "score"),
    "deepen-grade 0.4.1 grade": ("deepen-grade[lerobot]==0.4.1", "deepen", "grade"),
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
    """Make the dataset, measure."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        subprocess.run([sys.executable, "-m", "bench.copies", scratch], check=True, stdout=sys.stderr)
        dataset, log = str(place / "dataset"), place / "log"
        size = json.loads((place / "dataset" / "meta" / "info.json").read_text())
        demomill = str(Path(sys.executable).with_name("demomill"))
        read = _fastest([sys.executable, "-c", _READ, f"{dataset}/data"], log)
        ours = _fastest([demomill, "qc", dataset, "--out", str(place / "qc"), "--no-report"], log)
        peers = {name: _peer(command, dataset, log) for name, command in PEERS.items()}
    sizes = {"episodes": size["total_episodes"], "rows": size["total_frames"]}
    print("\nRESULT " + json.dumps({**sizes, "read": asdict(read), "ours": asdict(ours), "peers": peers}))


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
