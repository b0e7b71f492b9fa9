"""Render episodes."""

from collections.abc import Sequence
from pathlib import Path

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline.errors import UserError
from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.render.episodes import Progress, RenderSummary, render_run
from pipeline.store import Run


def render(
    root: Path,
    episodes: Sequence[str] | None = None,
    *,
    everything: bool = False,
    look: str = "plain",
    looks_per_episode: int = 1,
    cameras: Sequence[str] = DEFAULT_CAMERAS,
    size: str = "320x180",
    renderer: str = "auto",
    workers: int | None = None,
) -> RenderSummary:
    """Render what is missing of some episodes.

    Args:
        episodes: their ids; None means those that the verdicts keep, or all successes where there are no verdicts.
        everything: take every episode of the run instead.

    Raises:
        UserError: if there is nothing to render, an episode cannot be rendered, or the run cannot be used.
    """
    if everything:
        episodes = [folder.name for folder in Run(root).folders()]
    wanted = sorted(set(episodes or [meta["id"] for meta in RunFiles(root).kept()]))
    if not wanted:
        raise UserError(f"{root}: no episode to render; record more with `demomill record`, or give --all for failures")
    reporter = REPORTER.get()
    reporter.begin("render", len(wanted))

    def listen(event: Progress) -> None:
        if event.kind == "note":
            reporter.say(event.text)
        else:
            reporter.advance("render")

    summary = render_run(
        root,
        wanted,
        look=look,
        looks_per_episode=looks_per_episode,
        cameras=cameras,
        size=size,
        renderer=renderer,
        workers=workers,
        progress=listen,
    )
    if summary.failed:
        episode, why = min(summary.failed.items())
        raise UserError(f"{len(summary.failed)} of {len(wanted)} episodes could not be rendered: {episode}: {why}")
    return summary
