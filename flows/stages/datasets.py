"""The datasets that a release consists of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from flows.reporter import REPORTER
from flows.stages import quota
from flows.stages.publish import publish
from flows.stages.render import render
from pipeline.errors import UserError
from pipeline.export import Choice, export, is_current
from pipeline.recipe import Recipe

PICTURES = "-pictures"
"""Ending of the second dataset's folder and repository."""


@dataclass(frozen=True)
class Product:
    """One dataset: its folder, its repository if it has one, the verdicts that it is made of, and how it is built."""

    folder: Path
    repository: str | None
    verdicts: pd.DataFrame
    choice: Choice


def products(root: Path, recipe: Recipe) -> list[Product]:
    """One dataset with pictures; or, if not everything is rendered, one of all states and one of what is rendered."""
    repository = recipe.publication.repository if recipe.publication else None

    def product(ending: str, verdicts: pd.DataFrame, cameras: tuple[str, ...], looks: tuple[str, ...]) -> Product:
        counts = {str(task): int(count) for task, count in verdicts["task"].value_counts().items()}
        choice = Choice(cameras, looks, tuple(recipe.quotas), counts, recipe.test_fraction)
        return Product(root / f"dataset{ending}", repository and repository + ending, verdicts, choice)

    cameras, looks = recipe.pictures.cameras, recipe.pictures.look_names
    if not recipe.pictures_apart:
        return [product("", quota.chosen(root, recipe), cameras, looks)]
    states = product("", quota.chosen(root, recipe), (), looks[:1])
    return [states, product(PICTURES, quota.pictured(root, recipe), cameras, looks)]


def render_release(root: Path, recipe: Recipe) -> int:
    """Render what the recipe asks for and is missing; returns how many episodes were rendered, in any look."""
    episodes = sorted(quota.pictured(root, recipe)["episode_id"])
    return sum(
        len(
            render(
                root, episodes, look=look.name, looks_per_episode=look.per_episode, cameras=recipe.pictures.cameras
            ).rendered
        )
        for look in recipe.pictures.looks
    )


def export_release(root: Path, recipe: Recipe) -> int:
    """Build the datasets that are missing or not current; returns how many episodes were written."""
    written, made = 0, products(root, recipe)
    REPORTER.get().begin("export", len(made))
    for each in made:
        if not is_current(root, each.folder, each.verdicts, each.choice):
            written += export(root, each.folder, each.verdicts, each.choice).episodes
        REPORTER.get().advance("export", note=each.folder.name)
    return written


def publish_release(root: Path, recipe: Recipe) -> list[dict[str, Any]]:
    """Publish every dataset and prove what the Hub serves; what is there already stays.

    Returns:
        Of each dataset ``repository, url, tag, commit, verified``.

    Raises:
        UserError: if the recipe names no repository, or the Hub refuses.
    """
    if recipe.publication is None:
        raise UserError(f"{recipe.path}: has no [publication], so there is nowhere to publish; add repository and tag")
    to, done = recipe.publication, []
    for each in products(root, recipe):
        assert each.repository is not None
        private = to.visibility == "private"
        there = publish(each.folder, each.repository, to.tag, run=root, private=private, licence=to.licence)
        result = {name: getattr(there, name) for name in ("url", "tag", "commit", "verified")}
        done.append({"repository": each.repository, **result})
    return done
