"""Write docs/release/README.md from what a run of `demomill release` left behind.

Run it as ``python -m bench.release_page RUN`` to take over a run's papers, without RUN to write the page again.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image
from scipy.stats import binomtest

FOLDER = Path(__file__).parent.parent / "docs" / "release"
PAPERS = ("release.json", "manifest.json", "qc/report.html", "qc/pca.png", "qc/accounting.json")

HEAD = """\
# A release, made once in full

What `demomill release data/release.toml` came to on a machine with two CPU cores and no GPU: {recorded} attempts
recorded, {kept} kept, {released} released. Rendering is the dearest step by far, so of each task {pictured} episodes
were rendered (`--pictures-per-task {pictured}`); the states of all are one dataset, the rendered ones another. The
machine had other work meanwhile: idle, it records 1,456 attempts in 12 min 33 s, 6,960 an hour.

[Report of quality control](report.html) · [manifest](manifest.json) · [account](release.json)

![The kept and dropped episodes of each family in their first two principal components](pca.png)

![Two episodes of each task](contact_sheet.jpg)
"""


def take_over(run: Path) -> None:
    """Copy a run's papers into the docs."""
    FOLDER.mkdir(exist_ok=True)
    for name in PAPERS:
        shutil.copyfile(run / name, FOLDER / Path(name).name)
    report = FOLDER / "report.html"
    report.write_text(report.read_text().replace(str(run), run.name))
    Image.open(run / "contact_sheet.png").convert("RGB").reduce(2).save(FOLDER / "contact_sheet.jpg", quality=80)


def page() -> str:
    """Text of the page."""
    account = json.loads((FOLDER / "release.json").read_text())
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    tasks = account["tasks"]
    sums = {key: sum(counted[key] for counted in tasks.values()) for key in ("generated", "kept", "released")}
    pictured = max(counted["pictured"] for counted in tasks.values())
    return "\n".join(
        [
            HEAD.format(recorded=sums["generated"], kept=sums["kept"], released=sums["released"], pictured=pictured),
            *_yields(tasks, manifest["shards"]),
            "",
            *_costs(account, manifest, sums["generated"]),
            "",
            *_published(account),
        ]
    )


def _yields(tasks: Mapping[str, Mapping[str, Any]], shards: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = ("task", "attempts", "succeeded, 95 %", "core s each", "failed", "dropped", "review", "kept", "released")
    lines = [f"| {' | '.join(columns)} |", "| --- |" + " --- |" * (len(columns) - 1)]
    for task, counted in tasks.items():
        attempts = counted["generated"]
        won = attempts - sum(counted["failed"].values()) - counted["damaged"]
        interval = binomtest(won, attempts).proportion_ci(method="wilson")
        mine = [shard for shard in shards if shard["task"] == task]
        cost = sum(shard["core_seconds"] for shard in mine) / sum(shard["new"] for shard in mine)
        ends = [", ".join(f"{why} {n}" for why, n in counted[end].items()) for end in ("failed", "dropped", "review")]
        rate = f"{won} ({interval.low:.1%} to {interval.high:.1%})"
        row = (task, attempts, rate, f"{cost:.2f}", *ends, counted["kept"], counted["released"])
        lines.append(f"| {' | '.join(map(str, row))} |")
    return lines


def _costs(account: Mapping[str, Any], manifest: Mapping[str, Any], recorded: int) -> list[str]:
    sizes, videos = Counter[str](), 0
    for name, file in manifest["files"].items():
        kind = "videos" if name.startswith("episodes/") and name.endswith(".mp4") else name.split("/")[0]
        sizes[kind] += file["size"]
        videos += kind == "videos"
    lines = ["| stage | wall time | |", "| --- | --- | --- |"]
    notes = {"record": f"{3600 * recorded / account['seconds']['record']:.0f} episodes an hour"}
    for stage, seconds in account["seconds"].items():
        lines.append(f"| {stage} | {seconds / 60:.1f} min | {notes.get(stage, '')} |")
    stored = f"{1000 * sizes['episodes'] / recorded / 1e6:.0f} MB for 1,000 recorded episodes"
    lines += ["", f"Disk: {stored}, {sizes['videos'] / max(1, videos) / 1e3:.0f} kB a video of one episode and camera."]
    source, machine = manifest["source"], manifest["machine"]
    lines += ["", f"Made by commit `{source['commit'][:12]}` on {machine['processor']}." if source else ""]
    return lines


def _published(account: Mapping[str, Any]) -> list[str]:
    lines = ["| dataset | episodes | frames |", "| --- | --- | --- |"]
    lines += [f"| {each['folder']} | {each['episodes']} | {each['frames']} |" for each in account["datasets"]]
    told = [f"`{each['repository']}` at `{each['commit'][:12]}`" for each in account["published"] if each["verified"]]
    if told:
        lines += ["", f"Published to a Hub of our own and verified there, byte for byte: {', '.join(told)}."]
    return [*lines, ""]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_over(Path(sys.argv[1]))
    (FOLDER / "README.md").write_text(page())
