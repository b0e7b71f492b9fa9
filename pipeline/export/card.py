"""The dataset's own description, ``README.md``."""

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from huggingface_hub import DatasetCardData

from pipeline.export.layout import ROBOT_TYPE
from pipeline.export.selection import Kept
from pipeline.schema import FPS
from pipeline.tasks import Task

_CARD = Template("""\
---
$front
---
# Demonstrations of contact-rich assembly

Scripted experts in simulation: $episodes episodes, $frames frames at $fps Hz, robot `$robot`. Looks of the
pictures: $looks. Splits, by seed, as ranges of episodes: $splits. LeRobot format $version.

## Tasks

$tasks

## Features

Row t holds the observation before the action, the action taken from it and the reward it earned. Units are in the
names; poses are in the frame of the robot's base, quaternions in the order x, y, z, w.

$features

Columns `privileged.*` come from the simulator and are not observations. `phase` counts the names in the episode's
`phases`. `meta/episodes` also holds each episode's seed, draws, outcome, versions and content hash.

## Load

```python
from lerobot.datasets.lerobot_dataset import LeRobotDataset

dataset = LeRobotDataset("local/demomill", root="path/to/this/folder")
row = dataset[0]
print(row["task"], row["observation.state"], row["action"])
episode = dataset.meta.episodes[0]
print(episode["episode_id"], episode["seed"], episode["draws"])
```
""")


def card(kept: Sequence[Kept], tasks: Sequence[Task], info: Mapping[str, Any], looks: Sequence[str]) -> str:
    """Text of the card: front matter for the Hub, then what is inside and how to load it."""
    front = DatasetCardData(
        tags=["LeRobot", "demomill", "simulation", "assembly"],
        task_categories=["robotics"],
        configs=[{"config_name": "default", "data_files": "data/*/*.parquet"}],
    )
    lengths = {task.id: [episode.length for episode in kept if episode.task.id == task.id] for task in tasks}
    return _CARD.substitute(
        front=front.to_yaml(),
        episodes=info["total_episodes"],
        frames=info["total_frames"],
        fps=FPS,
        robot=ROBOT_TYPE,
        looks=", ".join(f"`{look}`" for look in looks),
        splits=", ".join(f"`{name}` {span}" for name, span in info["splits"].items()),
        version=info["codebase_version"],
        tasks=_table(
            ("task", "instruction", "episodes", "frames"),
            [(task.id, task.instruction, len(lengths[task.id]), sum(lengths[task.id])) for task in tasks],
        ),
        features=_table(
            ("feature", "type", "shape", "dimensions"),
            [
                (f"`{key}`", feature["dtype"], "x".join(map(str, feature["shape"])), ", ".join(feature["names"] or ()))
                for key, feature in info["features"].items()
            ],
        ),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
