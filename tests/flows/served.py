"""Prefect's UI served from a folder, and what a person does there, over the same requests."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest


@contextmanager
def serving(folder: Path, recipe: str, more: Mapping[str, str]) -> Iterator[SimpleNamespace]:
    """``demomill serve`` at work in a folder with a recipe; ``more`` is added to its environment."""
    (folder / "recipe.toml").write_text(recipe)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    there = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    there |= {**more, "PREFECT_HOME": str(folder / "prefect")}
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "serve", "--port", str(port)]
    url = f"http://127.0.0.1:{port}/api"
    with (folder / "log").open("w") as log:
        served = subprocess.Popen(command, cwd=folder, env=there, stdout=log, stderr=log)
    with pytest.MonkeyPatch.context() as patch, settings(url):
        patch.setenv("PREFECT_API_URL", url)
        try:
            until(deployed)
            yield SimpleNamespace(folder=folder, environment={**there, "PREFECT_API_URL": url}, url=url)
        finally:
            served.send_signal(signal.SIGINT)
            assert served.wait(60) in (0, 130)


@contextmanager
def settings(url: str) -> Iterator[None]:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url}):
        yield


def until(done, patience_s: float = 240.0):
    """Wait for something to be true, and return it."""
    deadline = time.monotonic() + patience_s
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


def deployed() -> bool:
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    try:
        with get_client(sync_client=True) as client:
            return bool(client.read_deployment_by_name("release/laptop"))
    except (httpx.HTTPError, ObjectNotFound, RuntimeError):
        return False


def start(site: SimpleNamespace, *parameters: str) -> UUID:
    """Start a release as one does on the command line; returns the id of the flow run."""
    words = [word for parameter in ("recipe=recipe.toml", *parameters) for word in ("-p", parameter)]
    command = [sys.executable, "-m", "prefect", "deployment", "run", "release/laptop", *words]
    told = subprocess.run(command, env=site.environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"UUID: ([0-9a-f-]{36})", told)
    assert found, told
    return UUID(found[1])


def state(run: UUID) -> str:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
    assert found is not None
    assert found.name is not None
    assert found.name not in ("Failed", "Crashed"), found.message
    return found.name


def form(run: UUID) -> tuple[str, dict]:
    """What a person sees: the description, and the schema of the fields."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
        assert found is not None
        keys = found.state_details.run_input_keyset
        assert keys is not None
        description, schema = (
            json.loads(until(partial(written, client, run, keys[name]))) for name in ("description", "schema")
        )
    return description, schema


def written(client: Any, run: UUID, key: str) -> bytes | None:
    """An input's part; Prefect pauses just before it writes them."""
    from prefect.exceptions import PrefectHTTPStatusError

    try:
        return client.read_flow_run_input(run, key)
    except PrefectHTTPStatusError:
        return None


def log(run: UUID) -> list[str]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    with get_client(sync_client=True) as client:
        return [entry.message for entry in client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run])))]


def artifacts(run: UUID) -> dict[str | None, Any]:
    """Artifacts of a release and of its recordings, by key."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        ArtifactFilter,
        ArtifactFilterFlowRunId,
        FlowRunFilter,
        FlowRunFilterParentFlowRunId,
    )

    with get_client(sync_client=True) as client:
        of_release = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run]))
        runs = [run, *(each.id for each in client.read_flow_runs(flow_run_filter=of_release))]
        of_runs = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=runs))
        return {artifact.key: artifact.data for artifact in client.read_artifacts(artifact_filter=of_runs)}
