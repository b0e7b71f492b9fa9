from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline import shards
from pipeline.cli import run
from tests.flows.fake_worker import fake_worker
from tests.pipeline.factories import make_episode


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The single line of an error."""
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("demomill: ")
        return lines[0]


@pytest.fixture
def demomill(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Runs a command in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> Answer:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        return Answer(code, *capfd.readouterr())

    return call


@pytest.fixture
def no_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "watch", fake_worker(make_episode))
