"""Recipes with everything in them checked, and what they are expected to cost here."""

from pathlib import Path

from pipeline.errors import UserError
from pipeline.recipe import Recipe, read_recipe
from qc.decisions import read_decisions
from qc.errors import QcError
from qc.settings import Settings


def load(path: Path | str, pictures_per_task: int | None = None) -> Recipe:
    """Read a recipe; its settings of quality control and its keep-list are checked, too.

    Args:
        pictures_per_task: instead of the recipe's ``episodes_per_task``.

    Raises:
        UserError: if anything in it is unknown or cannot be.
    """
    recipe = read_recipe(path).with_pictures(pictures_per_task)
    try:
        settings(recipe)
        if recipe.decisions is not None:
            read_decisions(recipe.decisions)
    except QcError as error:
        raise UserError(f"{path}: {error}") from None
    return recipe


def settings(recipe: Recipe) -> Settings:
    """Its settings of quality control."""
    return Settings.from_table(recipe.quality)
