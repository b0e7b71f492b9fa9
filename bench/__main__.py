"""Speed and memory of this machine against the alternatives, measured in one run: ``make bench``."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.processes import result_of
from bench.scaling import TASKS as SCALED
from pipeline.record import tasks_with_expert
from pipeline.tasks import get_task

AIMS_S = {"peg_round": 2.0, "peg_square": 2.0, "gear": 5.0, "nut": 40.0}
"""Most core seconds an episode that we want, by family."""


@dataclass(frozen=True)
class Line:
    """One measurement, or None; ``aim`` is the least (or, where ``most``, the largest) value that we want."""

    what: str
    value: float | None
    unit: str
    aim: float
    most: bool = False
    detail: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """What, value, aim, whether it is met, and where the value comes from."""
        aim = f"{'<=' if self.most else '>='} {self.aim:g} {self.unit}"
        if self.value is None:
            return self.what, "-", aim, "-", self.detail
        met = self.value <= self.aim if self.most else self.value >= self.aim
        return self.what, f"{self.value:.3g} {self.unit}", aim, "yes" if met else "no", self.detail


def main() -> None:
    """Run every benchmark in a process of its own and print the table."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch:
        state = str(Path(scratch) / "state.npz")
        console.print("stepping, our engine ...")
        native = result_of("bench.stepping", "native", state)
        console.print("stepping, Isaac Lab's MuJoCo Warp ...")
        stock = result_of("bench.stepping", "stock", state)
    episodes = {}
    for task in tasks_with_expert():
        console.print(f"episodes of {task} ...")
        episodes[task] = result_of("bench.episodes", task)
    scaling = {}
    for task in SCALED:
        console.print(f"scaling of {task} ...")
        scaling[task] = result_of("bench.scaling", task)
    console.print("rendering ...")
    images = result_of("bench.rendering")
    console.print("export ...")
    exported = result_of("bench.exporting")
    console.print("quality control ...")
    quality = result_of("bench.quality")
    console.print("defects ...")
    defects = result_of("bench.detection")
    table = Table(title="demomill benchmarks")
    for heading in ("measured", "value", "aim", "met", "from"):
        table.add_column(heading, overflow="fold")
    simulated = [*_stepping(native, stock), *_episodes(episodes), *_scaling(scaling), *_rendering(images)]
    for line in [*simulated, *_exporting(exported), *_quality(quality), *_detection(defects)]:
        table.add_row(*line.cells)
    Console(width=130).print(table)


def _stepping(native: dict[str, float], stock: dict[str, float]) -> list[Line]:
    step, bare, warp = native["step"], native["bare"], stock["step"]
    return [
        Line("control steps, against stock stepping", step / warp, "x", 60, detail=f"{step:.0f} / {warp:.1f} steps/s"),
        Line(
            "control steps, against bare mj_step",
            100 * step / bare,
            "%",
            60,
            detail=f"{step:.0f} / {bare:.0f} steps/s, {native['contacts']:.0f} contacts a world",
        ),
        Line(
            "whole recording loop, against bare mj_step",
            100 * native["loop"] / bare,
            "%",
            30,
            detail=f"{native['loop']:.0f} / {bare:.0f} steps/s",
        ),
        Line("peak memory of a worker with 16 envs", native["peak_memory_gb"], "GB", 4, most=True),
    ]


def _episodes(found: dict[str, dict[str, Any]]) -> list[Line]:
    """Core seconds an episode; the largest shares are named."""
    lines = []
    for task, each in found.items():
        largest = sorted(each["shares"].items(), key=lambda item: -item[1])
        detail = ", ".join(f"{part} {share:.0%}" for part, share in largest[:4])
        detail = f"{each['succeeded']} of {each['attempts']} succeeded; {detail}"
        lines.append(
            Line(
                f"core seconds an episode: {task}",
                each["seconds"],
                "s",
                AIMS_S[get_task(task).family],
                most=True,
                detail=detail,
            )
        )
    return lines


def _scaling(found: dict[str, dict[str, Any]]) -> list[Line]:
    lines = []
    for task, each in found.items():
        setting, rate = max(each["rates"].items(), key=lambda item: item[1])
        workers, envs = setting.split("-")
        detail = f"{rate:.0f} / {each['physics_alone']:.0f} episodes an hour; workers {workers}, envs {envs}"
        lines.append(
            Line(
                f"recording, against physics alone: {task}", 100 * rate / each["physics_alone"], "%", 60, detail=detail
            )
        )
    return lines


def _rendering(images: dict[str, dict[str, float]]) -> list[Line]:
    lines = []
    for setting, aim in (("320x180, no shadows", 8.0), ("320x180, shadows", 2.0), ("640x360, shadows", 2.0)):
        ours, theirs = images["mujoco"][setting], images["newton"][setting]
        detail = f"{ours:.0f} / {theirs:.1f} images per CPU-second"
        lines.append(Line(f"images, against the Newton camera: {setting}", ours / theirs, "x", aim, detail=detail))
    return lines


def _exporting(found: dict[str, float]) -> list[Line]:
    ours, encoded = found["export_s"], found["export_s"] + found["encoding_s"]
    theirs, streamed = found["lerobot_s"], found["lerobot_streaming_s"]
    detail = f"{ours:.2f} / {theirs:.1f} s, {streamed:.1f} s streaming, {found['episodes']} episodes"
    both = f"{encoded:.2f} / {theirs:.1f} s"
    return [
        Line("export, against LeRobot's add_frame and save_episode", theirs / ours, "x", 15, detail=detail),
        Line("export and our encoding, against the same", theirs / encoded, "x", 3, detail=both),
        Line("peak memory of an export", found["peak_memory_gb"], "GB", 0.5, most=True),
    ]


def _quality(quality: dict[str, Any]) -> list[Line]:
    """Other tools have no aim of ours to meet: each is to be slower."""
    read, ours, size = quality["read"], quality["ours"], f"{quality['episodes']} episodes, {quality['rows']} rows"
    both = f"{ours['wall_s']:.1f} / {read['wall_s']:.2f} s of whole processes, {size}"
    lines = [
        Line("quality control, against reading the same columns", ours["wall_s"] / read["wall_s"], "x", 3, True, both),
        Line("peak memory of quality control", ours["peak_gb"], "GB", 1, most=True, detail=size),
    ]
    for peer, cost in quality["peers"].items():
        ratio = None if isinstance(cost, str) else cost["wall_s"] / ours["wall_s"]
        detail = (
            cost if isinstance(cost, str) else f"{cost['wall_s']:.1f} s, {cost['peak_gb']:.1f} GB, exit {cost['code']}"
        )
        lines.append(Line(f"{peer}, against quality control", ratio, "x", 1, detail=detail))
    return lines


def _detection(defects: dict[str, Any]) -> list[Line]:
    lines = []
    for row in defects["found"]:
        detail = f"{row['found']} of {row['planted']} at {row['severity']:g} {row['unit']}"
        lines.append(Line(f"found: {row['defect']}", 100 * row["found"] / row["planted"], "%", 95, detail=detail))
    flagged, episodes, beside = defects["flagged"], defects["episodes"], defects["beside"]
    told = ", ".join(f"{task} {count}" for task, count in flagged.items())
    share = 100 * sum(flagged.values()) / episodes
    rest = f"{beside['false']} of {beside['healthy']} judgements"
    return [
        *lines,
        Line("healthy episodes not kept", share, "%", 1, True, f"of {episodes}; {told or 'none'}"),
        Line("healthy episodes not kept beside defects", 100 * beside["false"] / beside["healthy"], "%", 1, True, rest),
    ]


if __name__ == "__main__":
    main()
