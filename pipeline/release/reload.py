"""Load a released dataset as its users will: ``python -m pipeline.release.reload PARENT REPO_ID COMMIT``.

Prints what LeRobot counts, as JSON. Which Hub and which cache it uses is in the environment, which LeRobot reads when
it is imported: hence a process of its own, which ends with the process ``PARENT``.
"""

import json
import sys

from pipeline.process import die_with_parent


def main(repo_id: str, commit: str) -> None:
    """Load it, and decode its first and last row."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset(repo_id, revision=commit, video_backend="pyav")
    for row in (0, len(dataset) - 1):
        dataset[row]
    print(json.dumps({"episodes": dataset.num_episodes, "frames": len(dataset)}))


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    main(*sys.argv[2:])
