"""Offer the flows in Prefect's UI from this machine: they are started, watched, answered and cancelled there."""

from typing import cast

from prefect import serve as run_deployments
from prefect.deployments.runner import RunnerDeployment
from prefect.settings import PREFECT_UI_URL
from prefect.types.entrypoint import EntrypointType

from flows.nightly import nightly_qc
from flows.release import release
from flows.reporter import REPORTER

NAME = "laptop"
"""Of the deployments: ``release/laptop`` and ``nightly-qc/laptop``."""


def serve() -> None:
    """Serve the flows until interrupted, on the server that Prefect's settings name."""
    kind = EntrypointType.MODULE_PATH
    deployments = [
        release.to_deployment(NAME, parameters={"review": "pause"}, entrypoint_type=kind),
        nightly_qc.to_deployment(NAME, entrypoint_type=kind),
    ]
    REPORTER.get().say(f"open {PREFECT_UI_URL.value()}/deployments, or: prefect deployment run release/{NAME} --help")
    run_deployments(*cast(list[RunnerDeployment], deployments), print_starting_message=False)
