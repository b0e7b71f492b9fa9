"""Merge runs, with what people decided about their episodes."""

from collections.abc import Sequence
from pathlib import Path

from flows.reporter import REPORTER
from pipeline.errors import UserError
from pipeline.merge import Merged, merge_runs
from qc.decisions import Decision, read_decisions, write_decisions
from qc.folder import Folder


def merge(sources: Sequence[Path], out: Path) -> Merged:
    """Merge runs of one recipe; see :func:`pipeline.merge.merge_runs`.

    Raises:
        QcError: if decisions cannot be read or written.
        UserError: if the runs cannot be merged, or people decided differently about the same episode.
    """
    decided = _decisions([*sources, out])
    reporter = REPORTER.get()

    def listen(done: int, total: int) -> None:
        if done == 1:
            reporter.begin("merge", total)
        reporter.advance("merge")

    merged = merge_runs(sources, out, listen)
    folder = Folder(out / "qc")
    own = read_decisions(folder.decisions)
    fresh = {hash_: decided[hash_] for hash_ in merged.episodes.values() if hash_ in decided}
    if (both := {**fresh, **own}) != own:
        folder.root.mkdir(exist_ok=True)
        write_decisions(folder.decisions, both)
    return merged


def _decisions(roots: Sequence[Path]) -> dict[str, Decision]:
    decided = dict[str, Decision]()
    for root in roots:
        path = Folder(root / "qc").decisions
        for hash_, decision in read_decisions(path).items():
            other = decided.setdefault(hash_, decision)
            if other.verdict != decision.verdict:
                raise UserError(
                    f"{path}: {decision.who} decided to {decision.verdict} {hash_[:12]} ({decision.why}), {other.who} "
                    f"to {other.verdict} it ({other.why}); agree on one with `demomill review`, then merge"
                )
    return decided
