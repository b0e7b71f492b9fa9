"""A dataset's own description, ``README.md``: everything in it is read from the dataset."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd
from huggingface_hub import DatasetCard, DatasetCardData

from pipeline.export.layout import EPISODES_PATH, INFO_PATH, TASKS_PATH

BEGIN = "<!-- demomill: what stands between this line and its end is written anew with every release -->"
END = "<!-- demomill: end -->"

_CARD = Template("""\
# Demonstrations of contact-rich assembly

Scripted experts in simulation: $episodes episodes of $task_count tasks, $frames frames at $fps Hz, robot `$robot`. Made
with demomill. LeRobot format $version.

## Load

```python
from lerobot.datasets.lerobot_dataset import LeRobotDataset

dataset = LeRobotDataset($arguments)
row = dataset[0]
print(row["task"], row["observation.state"], row["action"])
episode = dataset.meta.episodes[0]
print(episode["episode_id"], episode["seed"], episode["draws"])
```

## Tasks

$tasks

Looks of the pictures: $looks. Splits, by seed, as ranges of episodes: $splits. Two looks of one motion are always in
the same split.

## Features

Row t holds the observation before the action, the action taken from it and the reward it earned. Actions are targets
of the joints: the measured state follows them with a delay of about two control steps, so an action is not the next
state. Units are in the names; positions are in the frame of the robot's base, quaternions in the order x, y, z, w.

$features

Columns `privileged.*` come from the simulator and are not observations. `phase` counts the names in the episode's
`phases`. `meta/episodes` also holds each episode's seed, draws, outcome, versions, rendering and content hash.

## Randomisation

Drawn for each episode from its seed; least and greatest value in this dataset. `start` is where the parts lie,
`competence` how the expert moves, `look` how it is seen.

$ranges
$sections
## Provenance

Run seed $seeds. Every draw of an episode is a function of run seed, task and attempt. Engine: $engine. Versions:
$versions.

## Licence

$licence The pictures show models of the Franka Emika Panda (Apache-2.0) and of the Robotiq 2F-85 (BSD-2-Clause) from
[MuJoCo Menagerie](https://github.com/google-deepmind/mujoco_menagerie), as they come with
[gym-hil](https://pypi.org/project/gym-hil/) (Apache-2.0). The assemblies are modelled on the NIST assembly task board.
""")


def card(
    root: Path, *, name: str = "", revision: str = "", licence: str = "apache-2.0", sections: Sequence[str] = ()
) -> str:
    """Text of a card: front matter for the Hub, then what is inside and how to load it.

    Args:
        root: the dataset folder, complete but for its card.
        name: ``user/name`` on the Hub; empty for a dataset that is on no Hub.
        revision: tag of the release.
        licence: identifier, as the Hub lists them.
        sections: more of the text, each with its heading.
    """
    info = json.loads((root / INFO_PATH).read_text())
    episodes = pd.read_parquet(root / EPISODES_PATH, columns=[*_READ])
    instructions = pd.read_parquet(root / TASKS_PATH).sort_values("task_index").index
    front = DatasetCardData(
        license=licence,
        tags=["LeRobot", "demomill", "robotics", "simulation", "assembly"],
        task_categories=["robotics"],
        configs=[{"config_name": "default", "data_files": "data/*/*.parquet"}],
    )
    arguments = f'"{name}", revision="{revision}"' if name else '"local/demomill", root="path/to/this/folder"'
    text = _CARD.substitute(
        episodes=info["total_episodes"],
        frames=info["total_frames"],
        task_count=info["total_tasks"],
        fps=info["fps"],
        robot=info["robot_type"],
        version=info["codebase_version"],
        arguments=arguments,
        tasks=_tasks(episodes, instructions),
        looks=", ".join(f"`{look}` ({count} episodes)" for look, count in _counts(episodes["look"]).items())
        or "none, the dataset holds states alone",
        splits=", ".join(f"`{split}` {span}" for split, span in info["splits"].items()),
        features=_features(info["features"]),
        ranges=_ranges(episodes),
        sections="".join(f"\n{section.strip()}\n" for section in sections),
        seeds=", ".join(map(str, sorted(episodes["run_seed"].unique()))),
        engine="; ".join(_together(episodes["engine"])),
        versions="; ".join(_together(episodes["versions"])),
        licence=f"The dataset's licence is `{licence}`.",
    )
    return f"---\n{front.to_yaml()}\n---\n{BEGIN}\n{text}{END}\n"


def merge(own: str, there: str) -> str:
    """A new card that keeps what people added to the one that is there: text outside our markers, other front matter.

    Args:
        own: a text of :func:`card`.
        there: the card of the repository; empty if there is none.
    """
    if not there:
        return own
    new, old = DatasetCard(own, ignore_metadata_errors=True), DatasetCard(there, ignore_metadata_errors=True)
    front = vars(old.data) | {key: value for key, value in vars(new.data).items() if value is not None}
    before, _, after = _outside(old.text)
    ours = _outside(new.text)[1]
    return f"---\n{DatasetCardData(**front).to_yaml()}\n---\n{before}{ours}{after}"


def _outside(text: str) -> tuple[str, str, str]:
    """Text before, within and after our markers; without markers it is all after."""
    text = text.lstrip("\n")
    found = re.search(rf"{re.escape(BEGIN)}\n.*?{re.escape(END)}\n", text, re.DOTALL)
    return (text[: found.start()], found[0], text[found.end() :]) if found else ("", "", f"\n{text}")


_READ = ("task_id", "tasks", "length", "look", "run_seed", "draws", "rendering", "engine", "versions")


def _tasks(episodes: pd.DataFrame, instructions: Iterable[str]) -> str:
    rows = []
    for instruction in instructions:
        ours = episodes[[instruction in tasks for tasks in episodes["tasks"]]]
        rows.append((ours["task_id"].iloc[0], instruction, len(ours), int(ours["length"].sum())))
    return table(("task", "instruction", "episodes", "frames"), rows)


def _features(features: Mapping[str, Any]) -> str:
    return table(
        ("feature", "type", "shape", "dimensions"),
        [
            (f"`{key}`", feature["dtype"], "x".join(map(str, feature["shape"])), ", ".join(feature["names"] or ()))
            for key, feature in features.items()
        ],
    )


def _ranges(episodes: pd.DataFrame) -> str:
    """Least and greatest value of every number that was drawn and differs between episodes."""
    spans: dict[str, tuple[float, float]] = {}
    for draws, rendering in zip(episodes["draws"], episodes["rendering"], strict=True):
        look = json.loads(rendering)["look"].get("draws") if rendering else None
        drawn = json.loads(draws) | ({"look": look} if look else {})
        for axis, value in _numbers(drawn):
            least, greatest = spans.get(axis, (value, value))
            spans[axis] = min(least, value), max(greatest, value)
    rows = [(f"`{axis}`", f"{a:.4g}", f"{b:.4g}") for axis, (a, b) in sorted(spans.items()) if a != b]
    return table(("axis", "least", "greatest"), rows) if rows else "Nothing differs between the episodes.\n"


def _numbers(tree: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, float]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{above}{key}", float(value)


def _together(texts: pd.Series) -> list[str]:
    """What several JSON objects say, each once."""
    return [", ".join(f"{key} {value}" for key, value in json.loads(text).items()) for text in sorted(set(texts))]


def _counts(values: pd.Series) -> dict[str, int]:
    return {str(value): int(count) for value, count in values.value_counts(sort=False).items()}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
