"""What Prefect's UI shows of a release: its plan, its yield and accounts, its pictures, and where everything is."""

import base64
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import PIL.Image
from prefect.artifacts import create_image_artifact, create_link_artifact, create_table_artifact
from scipy.stats import binomtest

from flows.stages.estimate import plan
from flows.stages.files import RunFiles
from pipeline.recipe import Recipe
from pipeline.yields import CONFIDENCE
from qc.folder import Folder

PICTURE_PX = (1200, 900)
"""Most of a picture that is kept in Prefect's database; the file in the run folder is whole."""


def key_of(*words: str) -> str:
    """Key of an artifact: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def show_plan(recipe: Recipe) -> None:
    """What is to be made of each task."""
    planned = plan(recipe)
    total = {name: sum(each[name] for each in planned.values()) for name in ("episodes", "attempts", "videos")}
    rows = [{"task": task, **each} for task, each in {**planned, "all": total}.items()]
    create_table_artifact(rows, "plan", f"{recipe.path.name}, seed {recipe.seed}")


def show_accounts(root: Path, recipe: Recipe) -> None:
    """Yield and account of each task after an assessment, the picture of all motions, and the report."""
    files = Folder(root / "qc")
    counted = json.loads(files.accounting.read_text())["tasks"]
    accounts = {task: counted[task] for task in recipe.quotas if task in counted}
    create_table_artifact([{"task": task, **_rates(each)} for task, each in accounts.items()], "yield")
    told = "generated = kept + dropped + review + failed + not assessed + damaged"
    rows = [{"task": task, **{name: _told(value) for name, value in each.items()}} for task, each in accounts.items()]
    create_table_artifact(rows, "accounting", told)
    if files.picture.is_file():
        _show_picture(files.picture, "motions")
    create_link_artifact(files.report.resolve().as_uri(), str(files.report), "report", "Report of quality control")


def show_release(root: Path, account: Mapping[str, Any]) -> None:
    """Where the datasets are, what they show, and where they were published.

    Args:
        account: as :func:`flows.stages.account.write_account` returns it.
    """
    files = RunFiles(root)
    if account["datasets"]:
        create_table_artifact(
            [{**each, "folder": str(root / each["folder"])} for each in account["datasets"]], "datasets"
        )
    if files.contact_sheet.is_file():
        _show_picture(files.contact_sheet, "contact-sheet")
    for each in account["published"]:
        create_link_artifact(each["url"], f"{each['repository']} {each['tag']}", key_of("release", each["repository"]))


def _rates(account: Mapping[str, Any]) -> dict[str, Any]:
    attempts = account["generated"]
    successes = attempts - sum(account["failed"].values()) - account["damaged"]
    sure = binomtest(successes, attempts).proportion_ci(CONFIDENCE, method="wilson")
    rate = f"{successes / attempts:.1%} ({sure.low:.1%} to {sure.high:.1%})"
    return {"attempts": attempts, "successes": successes, "rate, 95 % interval": rate, "kept": account["kept"]}


def _told(value: int | Mapping[str, int]) -> int | str:
    return value if isinstance(value, int) else ", ".join(f"{count} {why}" for why, count in value.items()) or 0


def _show_picture(path: Path, key: str) -> None:
    small, encoded = PIL.Image.open(path).convert("RGB"), io.BytesIO()
    small.thumbnail(PICTURE_PX)
    small.save(encoded, "JPEG", quality=80)
    uri = f"data:image/jpeg;base64,{base64.b64encode(encoded.getvalue()).decode()}"
    create_image_artifact(uri, key=key, description=str(path))
