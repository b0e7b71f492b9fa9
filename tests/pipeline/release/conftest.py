import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.export import export
from pipeline.store import Run
from tests.hub import Faults, TestHub
from tests.hub.fixtures import logged_in
from tests.pipeline.factories import make_episode, verdict_table, write_run

EPISODES = [make_episode(task, attempt, length=40) for task in ("peg_round_8mm", "nut_M8") for attempt in range(3)]


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"), EPISODES)


@pytest.fixture(scope="package")
def dataset(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run.root, tmp_path_factory.mktemp("out") / "dataset", verdict_table(run)).root


@pytest.fixture
def assessed(run: Run, tmp_path: Path) -> Run:
    """The run's folder as quality control leaves it; its episodes are elsewhere."""
    folder = tmp_path / "assessed" / "qc"
    folder.mkdir(parents=True)
    (folder.parent / "run.json").write_bytes((run.root / "run.json").read_bytes())
    failed = {"no grasp": 3, "dropped": 1}
    account = {"generated": 9, "kept": 3, "dropped": {"idle": 2}, "review": {}, "failed": failed, "not_assessed": 0}
    (folder / "accounting.json").write_text(json.dumps({"tasks": {"nut_M8": account}}))
    (folder / "pca.png").write_bytes(b"a picture")
    return Run(folder.parent)


@pytest.fixture(scope="package")
def smaller(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same but for one episode."""
    verdicts = verdict_table(run, dropped=EPISODES[-1].id)
    return export(run.root, tmp_path_factory.mktemp("out") / "dataset", verdicts).root


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestHub]:
    with logged_in(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture
def hub(running: TestHub) -> Iterator[TestHub]:
    """The Hub, without faults and with no requests to its name."""
    running.requests.clear()
    running.faults = Faults()
    yield running
    running.faults = Faults()


@pytest.fixture
def empty_hub(tmp_path: Path) -> Iterator[TestHub]:
    """A Hub that has stored nothing yet."""
    with logged_in(tmp_path / "hub") as hub:
        yield hub
