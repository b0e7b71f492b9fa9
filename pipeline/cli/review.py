"""``demomill review``: people decide, and their decisions win."""

import getpass
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

review = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List what was dropped or is for review, and decide: keep, drop, or undo a decision.",
    epilog="Example: demomill review list out/run",
)

Judged = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder, or the folder given to `demomill qc --out`.")]
Named = Annotated[list[str], typer.Argument(metavar="EPISODE...", help="Episode id, or the beginning of its hash.")]
Why = Annotated[str, typer.Option(help="Reason, for whoever reads the list next.")]
Who = Annotated[str | None, typer.Option(help="Who decides. [default: your user name]")]
_AGAIN = "learns from it in another round, and makes the report again"
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@review.command("list", epilog="Example: demomill review list out/run")
def list_(
    run: Judged,
    everything: Annotated[bool, typer.Option("--all", help="List the kept ones as well.")] = False,
    as_json: Json = False,
) -> None:
    """List what is not kept, with reasons, and what people decided."""
    from pipeline.cli.tables import table
    from pipeline.cli.terminal import show
    from qc.folder import Folder
    from qc.table import KEEP, read_verdicts, to_json

    verdicts = read_verdicts(Folder.of(run).verdicts)
    shown = verdicts if everything else verdicts[(verdicts["verdict"] != KEEP) | (verdicts["decided_by"] != "")]
    rows = to_json(shown)
    columns = ("episode", "hash", "verdict", "reasons", "why")
    cells = [
        (r["episode_id"], r["content_hash"][:12], r["verdict"], ", ".join(r["reasons"]), _why(r)[:160]) for r in rows
    ]
    totals = ", ".join(f"{n} {verdict}" for verdict, n in Counter(verdicts["verdict"]).most_common())
    show({"episodes": rows}, as_json, table(columns, cells), f"{len(verdicts)} episodes: {totals}")


@review.command(epilog='Example: demomill review keep out/run peg_round_8mm-s0-00004 --why "slow but right"')
def keep(run: Judged, episodes: Named, why: Why, who: Who = None, as_json: Json = False) -> None:
    """Keep episodes, whatever the filters say."""
    _decide(run, episodes, "keep", who, why, as_json)


@review.command(epilog='Example: demomill review drop out/run peg_round_8mm-s0-00004 --why "scrapes the rim"')
def drop(run: Judged, episodes: Named, why: Why, who: Who = None, as_json: Json = False) -> None:
    """Drop episodes, whatever the filters say."""
    _decide(run, episodes, "drop", who, why, as_json)


@review.command(epilog="Example: demomill review undo out/run peg_round_8mm-s0-00004")
def undo(run: Judged, episodes: Named, as_json: Json = False) -> None:
    """Take decisions back: the filters' verdict counts again."""
    from pipeline.cli.terminal import show
    from qc.folder import Folder

    folder = Folder.of(run)
    hashes = folder.undo(episodes)
    done = f"{folder.decisions}: {len(hashes)} decisions taken back. Next: demomill qc {_AGAIN}"
    show({"undone": hashes}, as_json, done)


def _decide(run: Path, episodes: list[str], verdict: str, who: str | None, why: str, as_json: bool) -> None:
    from pipeline.cli.terminal import show
    from qc.folder import Folder

    folder = Folder.of(run)
    hashes = folder.decide(episodes, verdict, getpass.getuser() if who is None else who, why)
    done = f"{folder.decisions}: {len(hashes)} decided ({verdict}). Next: demomill qc {_AGAIN}"
    show({"decided": hashes, "verdict": verdict}, as_json, done)


def _why(row: dict[str, str]) -> str:
    return f"{row['decided_by']}: {row['decided_why']}" if row["decided_by"] else row["explanation"]
