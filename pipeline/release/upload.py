"""Bring a repository to what a plan says, in one commit."""

from collections.abc import Callable
from itertools import batched

import httpx
from huggingface_hub import CommitOperationAdd, CommitOperationDelete
from huggingface_hub.errors import HfHubHTTPError

from pipeline.release.errors import is_passing
from pipeline.release.hub import KIND, TRIES, Repository
from pipeline.release.plan import Plan

BATCH = 8
"""Files that are uploaded side by side; those that arrived are not sent again after a kill."""


def upload(repository: Repository, plan: Plan, replan: Callable[[], Plan], sent: Callable[[int], object] = int) -> str:
    """Upload what is new and changed, delete what is stale; the branch moves when everything is there.

    Args:
        plan: what to change.
        replan: asks again what is to change, after an answer was lost on the way.
        sent: told the number of files that have arrived since it was told last.

    Returns:
        The commit at which the Hub now has the release.

    Raises:
        UserError: if the Hub refuses or breaks off; what arrived is not sent again next time.
    """
    operations = {file.path: CommitOperationAdd(file.path, file.source) for file in plan.to_upload}
    with repository.explained():
        for batch in batched(operations.values(), BATCH):
            repository.api.preupload_lfs_files(
                repository.repo_id, batch, repo_type=KIND, num_threads=4, free_memory=False
            )
            sent(len(batch))
        for attempt in range(TRIES):
            if not plan.changes:
                break
            additions = [operations[file.path] for file in plan.to_upload]
            deletions = [CommitOperationDelete(path, is_folder=False) for path in plan.stale]
            try:
                return repository.api.create_commit(
                    repository.repo_id,
                    [*additions, *deletions],
                    commit_message=f"Release {plan.tag}",
                    repo_type=KIND,
                    parent_commit=plan.commit,
                ).oid
            except (HfHubHTTPError, httpx.TransportError) as error:
                if attempt == TRIES - 1 or not is_passing(error):
                    raise
                plan = replan()
    assert plan.commit is not None
    return plan.commit
