"""How recording scales with envs and workers, and where the time goes.

``python -m bench.scaling TASK`` measures one task; ``python -m bench.scaling`` measures two and writes docs/scaling.md.
"""

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.processes import result_of
from pipeline.engine import Engine
from pipeline.manifest import _processor
from pipeline.record import Request, plan_shards
from pipeline.render.renderer import Choice, choose_renderer
from pipeline.shards import Progress, record_shard
from pipeline.sim.worker import Shard
from pipeline.store import Run, read_meta
from pipeline.tasks import get_task

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
TASKS = ("peg_round_8mm", "nut_M8")
ENVS, WORKERS = (1, 2, 4, 8, 16), (1, 2)
RUN_SEED = 1

EPISODES = {"nut": 16}
"""Attempts of a measurement at least, by family; 32 of the others."""

PICTURED = 2
"""Episodes that are rendered."""

PARTS = {
    "physics (`mj_step`)": ("mj_step",),
    "contact health": ("contact probe",),
    "expert and servo": ("expert", "servo"),
    "hand-over (observation)": ("observe",),
    "recording (Parquet, hash, fsync)": ("store",),
    "Isaac Lab and the recorder": ("Isaac Lab and the recorder",),
}
"""Shares of :func:`bench.episodes.measure` by what they are spent on."""

HEAD = """\
# Scaling

Written by `python -m bench.scaling` on {date}: {cores} cores of {processor}, run seed {seed}.
A worker's start, {start_s:.0f} s here, is not counted: it is paid once for a hundred episodes. Physics alone are the
same `mj_step` calls with nothing between them, on all cores: the limit of anything that records these episodes.
"""


def measure(task: str) -> dict[str, Any]:
    """Episodes an hour of every setting, core seconds of every part of an episode, pictures included."""
    parts = result_of("bench.episodes", task, str(max(ENVS)))
    rates, starts = {}, list[float]()
    with tempfile.TemporaryDirectory() as scratch:
        for workers in WORKERS:
            for envs in ENVS:
                root = Path(scratch, f"{workers}-{envs}")
                rates[f"{workers}-{envs}"], start_s = throughput(task, root, workers, envs)
                starts.append(start_s)
        choice = choose_renderer()
        pictures = result_of("bench.scaling", "pictures", str(root), json.dumps(vars(choice)), env=choice.environment())
    seconds = {name: parts["seconds"] * sum(parts["shares"][key] for key in keys) for name, keys in PARTS.items()}
    limit = (os.cpu_count() or 1) * 3600.0 / seconds["physics (`mj_step`)"]
    return {"rates": rates, "start_s": max(starts), "parts": {**seconds, **pictures}, "physics_alone": limit}


def throughput(task: str, root: Path, workers: int, num_envs: int) -> tuple[float, float]:
    """Record some episodes; returns episodes an hour, and the seconds until the last worker was ready."""
    attempts = max(EPISODES.get(get_task(task).family, 32), workers * num_envs)
    engine = Engine(threads=os.cpu_count() or 1)
    request = Request(root, (task,), attempts, RUN_SEED, engine, num_envs, workers)
    begin = time.perf_counter()

    def timed(shard: Shard) -> tuple[float, float]:
        times: dict[str, float] = {}

        def listen(event: Progress) -> None:
            times[event.kind] = time.perf_counter()

        report = record_shard(shard, listen)
        if report.problem:
            sys.exit(report.problem)
        return report.new / (times["episode"] - times["ready"]), times["ready"] - begin

    with ThreadPoolExecutor(workers) as pool:
        rates, starts = zip(*pool.map(timed, plan_shards(request, math.ceil(attempts / workers))), strict=True)
    return 3600.0 * sum(rates), max(starts)


def pictures(root: Path, choice: Choice) -> dict[str, float]:
    """Core seconds of an episode's videos from two cameras; the process is in the choice's environment."""
    from pipeline.render import worker
    from pipeline.render.cameras import DEFAULT_CAMERAS

    spent = dict.fromkeys(("shooting", "encoding"), 0.0)

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            result = work(*arguments)
            spent[part] += time.process_time() - start
            return result

        return call

    folders = [folder for folder in Run(root).folders() if read_meta(folder)["outcome"] == "success"]
    worker.encode = timed("encoding", worker.encode)  # type: ignore[attr-defined]
    with worker.EpisodeRenderer(worker.Job(choice, ("plain",), DEFAULT_CAMERAS)) as renderer:
        renderer.render(folders[0])
        renderer._renderer.render = timed("shooting", renderer._renderer.render)  # type: ignore[method-assign]
        spent.update(shooting=0.0, encoding=0.0)
        start = time.process_time()
        for folder in folders[1 : 1 + PICTURED]:
            renderer.render(folder)
        total = time.process_time() - start
    return {
        "rendering, both cameras": spent["shooting"] / PICTURED,
        "encoding (H.264)": (spent["encoding"] - spent["shooting"]) / PICTURED,
        "reading the videos back, and checking them": (total - spent["encoding"]) / PICTURED,
    }


def page(measured: dict[str, dict[str, Any]]) -> str:
    """Text of docs/scaling.md."""
    start_s = max(found["start_s"] for found in measured.values())
    date = datetime.now(UTC).date().isoformat()
    lines = [HEAD.format(date=date, cores=os.cpu_count(), processor=_processor(), seed=RUN_SEED, start_s=start_s)]
    rates = {
        f"{workers} worker{'s' * (workers > 1)}, {envs}": [
            f"{f['rates'][f'{workers}-{envs}']:,.0f} ({f['rates'][f'{workers}-{envs}'] / f['physics_alone']:.0%})"
            for f in measured.values()
        ]
        for workers in WORKERS
        for envs in ENVS
    }
    rates["physics alone, all cores"] = [f"{found['physics_alone']:,.0f}" for found in measured.values()]
    parts = {
        part: [f"{found['parts'][part]:.3f}" for found in measured.values()]
        for part in next(iter(measured.values()))["parts"]
    }
    shares = [found["parts"]["physics (`mj_step`)"] / _recording_s(found) for found in measured.values()]
    parts["physics, of all that is recording"] = [f"{share:.0%}" for share in shares]
    lines += ["## Episodes an hour, and the part of physics alone", ""]
    lines += _table(["workers, envs of each", *measured], rates)
    lines += ["", f"## Core seconds of an episode, {max(ENVS)} envs on one thread", ""]
    lines += _table(["part", *measured], parts)
    return "\n".join(lines) + "\n"


def _recording_s(found: dict[str, Any]) -> float:
    """Core seconds of an episode without its pictures."""
    return float(sum(found["parts"][name] for name in PARTS))


def _table(heading: Sequence[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    cells = [heading, ["---"] * len(heading), *([name, *row] for name, row in rows.items())]
    return [f"| {' | '.join(line)} |" for line in cells]


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            PAGE.write_text(page({task: result_of("bench.scaling", task) for task in TASKS}))
        case ["pictures", root, choice]:
            print("\nRESULT " + json.dumps(pictures(Path(root), Choice(**json.loads(choice)))))
        case [task]:
            print("\nRESULT " + json.dumps(measure(task)))
