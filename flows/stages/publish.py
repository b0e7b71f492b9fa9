"""Release a dataset on the Hub."""

from pathlib import Path

from flows.reporter import REPORTER
from pipeline.release import Plan, Published
from pipeline.release import publish as release


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
) -> Published:
    """Publish a dataset, prove what the Hub serves and tag it, and show the progress; see :mod:`pipeline.release`."""
    reporter, begun = REPORTER.get(), set[str]()

    def announce(plan: Plan) -> None:
        deeds = f"{len(plan.new)} new, {len(plan.changed)} changed, {len(plan.stale)} stale of {len(plan.files)} files"
        reporter.say(f"{repo_id}: {deeds}, {plan.upload_bytes / 1e6:.1f} MB to upload")

    def progress(step: str, done: int, total: int) -> None:
        if step not in begun:
            reporter.begin(step, total)
            begun.add(step)
        reporter.advance(step, done)

    return release(
        dataset,
        repo_id,
        tag,
        run=run,
        private=private,
        licence=licence,
        endpoint=endpoint,
        dry_run=dry_run,
        announce=announce,
        progress=progress,
    )
