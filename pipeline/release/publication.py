"""Publish a dataset, start to end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.export.card import card as write_card
from pipeline.export.card import merge
from pipeline.export.layout import CARD_PATH, CODEBASE_VERSION
from pipeline.release.files import CARD_FOLDER, File, dataset_files
from pipeline.release.hub import Remote, Repository, without_bars
from pipeline.release.plan import Plan, make_plan, require_release_tag, require_servable
from pipeline.release.quality import Quality
from pipeline.release.upload import upload
from pipeline.release.verify import check_listing, require_room, verify_release

Progress = Callable[[str, int, int], object]
"""Told the name of a step, the number of files done since it was told last, and how many there are in all."""


@dataclass(frozen=True)
class Published:
    """What a publication did.

    Attributes:
        url: where people see the repository.
        commit: that the tags name; None after a dry run.
        files: number of files of the release.
        uploaded_bytes: size of the files that were new or changed.
        changed: whether anything was committed or tagged.
        verified: whether the Hub was proved to serve the release at ``commit``, now or before it was tagged.
        plan: what was to be done.
    """

    url: str
    tag: str
    commit: str | None
    files: int
    uploaded_bytes: int
    changed: bool
    verified: bool
    plan: Plan

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "plan"}
        return {**plain, "plan": self.plan.to_dict()}


def publish(
    dataset: Path | str,
    repo_id: str,
    tag: str,
    *,
    run: Path | str | None = None,
    private: bool = True,
    licence: str = "apache-2.0",
    endpoint: str | None = None,
    dry_run: bool = False,
    announce: Callable[[Plan], object] = bool,
    progress: Progress = lambda *_: None,
) -> Published:
    """Release a dataset on the Hub: upload what differs, delete what is stale, prove what is served, then tag it.

    A tag that exists is never moved: publishing the same again does nothing, publishing something else under it is
    refused. LeRobot's tag of its format is moved to the newest release, and back to this one from a commit that is no
    release. Both tags are set last, so a release that
    breaks off or fails its verification leaves users with the one before. The same command again goes on from there.

    Args:
        dataset: folder of a dataset that ``export`` made; it is only read.
        repo_id: ``user/name``; the repository is created if it is missing.
        tag: of this release.
        run: the run it was exported from, for the card: quality control and pictures.
        private: of a repository that is created; one that exists stays as it is.
        licence: identifier of the licence, as the Hub lists them.
        endpoint: address of the Hub; None takes ``HF_ENDPOINT`` or huggingface.co.
        dry_run: make the plan, and change nothing.
        announce: told the plan before it is carried out.
        progress: told how far uploading and verifying are.

    Raises:
        UserError: if the dataset or the run cannot be read, the dataset is not what its manifest says, the Hub refuses
            or breaks off, or serves anything but what was sent; the message names the file.
    """
    root, repository = Path(dataset).resolve(), Repository(repo_id, endpoint)
    require_release_tag(tag)
    quality = Quality.of(Path(run), root) if run is not None else Quality()
    fixed = dataset_files(root)
    own_card = write_card(root, name=repo_id, revision=tag, licence=licence, sections=quality.sections)

    def plan_now() -> tuple[Remote, Plan]:
        remote = repository.look()
        card = merge(own_card, remote.card)
        files = [*fixed, File(CARD_PATH, card.encode()), *quality.pictures]
        return remote, make_plan(repo_id, tag, files, card, remote, private=private)

    remote, plan = plan_now()
    require_servable(plan.files)
    require_room(plan.files)
    result = Published(repository.url, tag, None, len(plan.files), 0, changed=False, verified=False, plan=plan)
    if tag in remote.tags:
        commit = remote.tags[tag]
        _require_same(repository, tag, commit, fixed)
        astray = remote.tags.get(CODEBASE_VERSION) not in _releases(remote)
        if astray and not dry_run:
            repository.set_tag(CODEBASE_VERSION, commit)
        return replace(result, commit=commit, changed=astray and not dry_run, verified=True)
    announce(plan)
    if dry_run:
        return result
    repository.require_token()
    if remote.commit is None:
        repository.create(private)
        plan = plan_now()[1]
    uploads, downloads = len(plan.to_upload), len(plan.files)
    with without_bars():
        commit = upload(repository, plan, lambda: plan_now()[1], lambda sent: progress("upload", sent, uploads))
        verify_release(repository, commit, plan.files, lambda checked: progress("verify", checked, downloads))
    for each in (CODEBASE_VERSION, tag):
        repository.set_tag(each, commit)
    return replace(result, commit=commit, uploaded_bytes=plan.upload_bytes, changed=True, verified=True, plan=plan)


def _releases(remote: Remote) -> set[str]:
    """Commits that were verified: those of all tags but LeRobot's."""
    return {commit for tag, commit in remote.tags.items() if tag != CODEBASE_VERSION}


def _require_same(repository: Repository, tag: str, commit: str, files: Sequence[File]) -> None:
    """Refuse to publish something else under a tag that exists; the card may differ, people write into it."""
    listed = repository.files(commit)
    dataset = {path: served for path, served in listed.items() if not path.startswith(f"{CARD_FOLDER}/")}
    differs = next(check_listing(dataset, files), None)
    if differs is not None:
        raise UserError(
            f"{repository.repo_id}: the tag {tag} is at commit {commit}, which is not this dataset ({differs}); "
            "a release is never moved: choose a new --release-tag"
        )
