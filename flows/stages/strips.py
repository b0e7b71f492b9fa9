"""Show each task at a glance: a phase strip and a clip of one episode."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.stages.files import RunFiles
from flows.stages.render import render
from pipeline.errors import UserError
from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.render.look import PLAIN
from pipeline.render.looks import look_names
from pipeline.render.strips import clip, phase_strip
from pipeline.store import Run, explain_os_errors
from pipeline.tasks import CATALOGUE


def strips(root: Path, out: Path, *, look: str = "plain") -> dict[str, dict[str, str]]:
    """Draw, for each task of a run, the kept episode (else success) of median length; it is rendered where needed.

    Returns:
        By task, in catalogue order: ``episode``, ``strip`` (a PNG) and ``clip`` (a GIF).

    Raises:
        UserError: if no episode is kept, or it cannot be rendered or drawn.
    """
    chosen = _typical(RunFiles(root).kept())
    if not chosen:
        raise UserError(f"{root}: no successful episode to show; record more with `demomill record`")
    render(root, [meta["id"] for meta in chosen.values()], look=look)
    return _draw(Run(root), chosen, out, look_names(look)[0], DEFAULT_CAMERAS)


def draw_strips(
    root: Path,
    kept: Sequence[Mapping[str, Any]],
    out: Path,
    name: str = PLAIN.name,
    cameras: Sequence[str] = DEFAULT_CAMERAS,
) -> None:
    """The same of episodes that are rendered in the look ``name`` already."""
    _draw(Run(root), _typical(kept), out, name, cameras)


def _typical(kept: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    chosen = {}
    for task in CATALOGUE:
        metas = sorted((meta for meta in kept if meta["task"] == task), key=lambda meta: (meta["length"], meta["id"]))
        if metas:
            chosen[task] = metas[len(metas) // 2]
    return chosen


def _draw(
    run: Run, chosen: Mapping[str, Mapping[str, Any]], out: Path, name: str, cameras: Sequence[str]
) -> dict[str, dict[str, str]]:
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for task, meta in chosen.items():
        folder = run.folder(task, meta["id"])
        strip = phase_strip(folder, meta, out / f"{task}.png", name, cameras)
        drawn[task] = {
            "episode": meta["id"],
            "strip": str(strip),
            "clip": str(clip(folder, out / f"{task}.gif", name, cameras)),
        }
    return drawn
