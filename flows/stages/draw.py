"""Pictures of a release: a contact sheet, and of each task a phase strip and a clip."""

from pathlib import Path

from flows.stages import quota
from flows.stages.datasets import products
from flows.stages.files import RunFiles
from flows.stages.strips import draw_strips
from pipeline.export.layout import MANIFEST_PATH
from pipeline.recipe import Recipe
from pipeline.render.contact_sheet import contact_sheet
from pipeline.store import Run, read_meta

EPISODES_SHOWN = 2
"""Episodes of each task on the contact sheet."""


def draw(root: Path, recipe: Recipe) -> bool:
    """Draw, unless nothing was exported since; returns whether it had to."""
    files, run = RunFiles(root), Run(root)
    exported = (products(root, recipe)[-1].folder / MANIFEST_PATH).stat().st_mtime
    if files.contact_sheet.is_file() and files.contact_sheet.stat().st_mtime > exported:
        return False
    rows = quota.pictured(root, recipe)
    look, cameras = recipe.pictures.look_names[0], recipe.pictures.cameras
    metas = [read_meta(run.folder(*names)) for names in zip(rows["task"], rows["episode_id"], strict=True)]
    draw_strips(root, metas, files.strips, look, cameras)
    shown = rows.groupby("task", sort=False).head(EPISODES_SHOWN)["episode_id"]
    contact_sheet(root, list(shown), files.contact_sheet, look=look, cameras=cameras)
    return True
