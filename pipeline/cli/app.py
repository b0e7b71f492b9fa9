"""The commands and their options. Whatever takes time to import is imported by the command that needs it."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipeline import __version__
from pipeline.cli.release import recipe, release, serve
from pipeline.cli.review import review

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Example: demomill generate --out out/demo",
)

app.add_typer(review, name="review")
app.add_typer(recipe, name="recipe")

Tasks = Annotated[list[str], typer.Option("--task", metavar="TASK", help="Task id; give it again for more tasks.")]
AnyTasks = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="TASK", help="Task id, may be repeated. [default: all with an expert]"),
]
Seed = Annotated[int, typer.Option(help="With task and attempt it fixes every draw of an episode.")]
NumEnvs = Annotated[int, typer.Option(help="Parallel envs of a worker; does not change the episodes.")]
Device = Annotated[str, typer.Option(help="auto, cpu or a CUDA device such as cuda:0.")]
Workers = Annotated[int | None, typer.Option(help="Worker processes at a time. [default: by cores and memory]")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads that step CPU worlds. [default: all cores]")]
Cameras = Annotated[list[str] | None, typer.Option(metavar="CAMERA", help="May be repeated. [default: front, wrist]")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]
Format = Literal["lerobot", "hdf5"]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def _folder(name: str) -> Path:
    if not name.strip():
        raise typer.BadParameter("is empty; name a folder")
    return Path(name)


@app.callback(invoke_without_command=True)
def demomill(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Make robot demonstrations of contact-rich assembly: from simulation to a LeRobot dataset."""
    if version:
        print(f"demomill {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example: demomill tasks")
def tasks(as_json: Json = False) -> None:
    """List the tasks: what is assembled, within which tolerances, and whether an expert can do it yet."""
    from pipeline.cli.tables import task_table
    from pipeline.cli.terminal import show
    from pipeline.reasons import failure_reasons, make_expert
    from pipeline.record import tasks_with_expert
    from pipeline.tasks import CATALOGUE

    with_expert = tasks_with_expert()
    keys = ("id", "family", "instruction", "timeout_s")
    listed = [
        {
            **{key: getattr(task, key) for key in keys},
            "seat": asdict(task.seat),
            "has_expert": task.id in with_expert,
            "failure_reasons": failure_reasons(make_expert(task, 1) if task.id in with_expert else None),
        }
        for task in CATALOGUE.values()
    ]
    show({"tasks": listed}, as_json, task_table(listed))


@app.command(epilog="Example: demomill record --task peg_round_8mm --episodes 64 --seed 1000 --out out/run")
def record(
    task: Tasks,
    out: Annotated[Path, typer.Option(help="Run folder; made if it is missing, completed if it is there.")],
    episodes: Annotated[int, typer.Option(help="Attempts of each task.")] = 64,
    attempt: Annotated[int | None, typer.Option(help="Make only the attempt of this number, from 0.")] = None,
    num_envs: NumEnvs = 16,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Record attempts at tasks: physics only, every outcome kept. The same command again adds what is missing."""
    from pipeline.cli.tables import recorded_table
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages import record as stage
        from pipeline.record import success_by_task

        wanted = stage.request(
            out, task, episodes, seed, num_envs=num_envs, device=device, workers=workers, threads=threads
        )
        if attempt is not None:
            wanted = replace(wanted, episodes=1, first_attempt=attempt)
        recorded = stage.record(wanted)
    summary = recorded.to_dict()
    news = f"{recorded.new} new" if recorded.new else f"nothing to do: all {summary['attempted']} episodes are there"
    show(
        summary,
        as_json,
        recorded_table(success_by_task((*recorded.episodes, *recorded.hung))),
        f"{out}: {news}. Next: demomill qc {out}",
    )


@app.command("yield", epilog="Example: demomill yield --episodes 64 --seed 7000")
def measure_yield(
    task: AnyTasks = None,
    episodes: Annotated[int, typer.Option(help="Attempts of each task.")] = 64,
    num_envs: NumEnvs = 16,
    seed: Seed = 7000,
    device: Device = "auto",
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to keep and to go on from. [default: removed at the end]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how often each task succeeds, with 95 % intervals, why it fails, and what an episode costs."""
    from pipeline.cli.tables import yield_table
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages import record as stage
        from flows.stages.files import kept_or_temporary
        from pipeline.record import tasks_with_expert
        from pipeline.yields import task_yields

        with kept_or_temporary(out) as root:
            wanted = task or tasks_with_expert()
            recorded = stage.record(
                stage.request(root, wanted, episodes, seed, num_envs=num_envs, device=device, workers=workers)
            )
    yields = [asdict(each) for each in task_yields(recorded)]
    show({"tasks": yields}, as_json, yield_table(yields))


@app.command(epilog="Example: demomill check peg_round_8mm")
def check(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id.")],
    episodes: Annotated[int, typer.Option(min=1, help="Attempts of each kind.")] = 4,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Check a task and its expert: data, contract, start, success, repeatability, and controls that must fail."""
    from pipeline.cli.terminal import show, working

    with working():
        from experts import EXPERTS
        from pipeline.checks import check_expert, check_task
        from pipeline.tasks import get_task

        checked, factory = get_task(task), EXPERTS.get(get_task(task).family)
        check_task(checked, num_envs=episodes, seed=seed)
        if factory is not None:
            check_expert(factory, checked, episodes=episodes, seed=seed)
    found = "the task and its expert pass" if factory else "the task passes; it has no expert yet"
    show({"task": task, "passed": True, "has_expert": factory is not None}, as_json, f"{task}: {found}")


@app.command(epilog="Example: demomill qc out/run")
def qc(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Run folder, LeRobot dataset (v3.0, v2.1), or its name on the Hub.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(parser=_folder, metavar="<path>", help="Where to write. [default: qc in the run folder]"),
    ] = None,
    decisions: Annotated[
        Path | None, typer.Option(help="Decisions of people, taken over. [default: decisions.toml in --out]")
    ] = None,
    videos: Annotated[bool, typer.Option("--videos", help="Compare videos with rows as well.")] = False,
    report: Annotated[bool, typer.Option(help="Write the report as well; it takes longer than the verdicts.")] = True,
    as_json: Json = False,
) -> None:
    """Judge every episode: keep, drop with a reason, or review. Nothing is edited or deleted."""
    from pipeline.cli.tables import account_table, diversity_parts
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.assess import assess
        from qc.folder import Folder

        counted = assess(source, out, decisions, videos=videos, report=report)
        files = Folder.of(out or source)
    show(
        counted,
        as_json,
        account_table(counted["tasks"]),
        *diversity_parts(counted["diversity"]),
        f"verdicts: {files.verdicts}\n{f'report:   {files.report}\n' if report else ''}"
        f"Next: demomill review list {out or source}",
    )


@app.command(epilog="Example: demomill render out/run")
def render(
    run: RunFolder,
    everything: Annotated[bool, typer.Option("--all", help="Render failures and dropped episodes as well.")] = False,
    episode: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this episode; may be repeated.")] = None,
    look: Annotated[str, typer.Option(help="Lights, colours, textures, cameras: plain, workshop or varied.")] = "plain",
    looks_per_episode: Annotated[int, typer.Option(help="Draws of a look that varies, for each episode.")] = 1,
    camera: Cameras = None,
    size: Annotated[str, typer.Option(help="Of the pictures: 320x180 or 640x360.")] = "320x180",
    renderer: Annotated[str, typer.Option(help="auto, mujoco or newton.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Worker processes. [default: one a core]")] = None,
    as_json: Json = False,
) -> None:
    """Render episodes to videos from their recorded poses: those that `demomill qc` kept, else all successes."""
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages import render as stage
        from pipeline.render.cameras import DEFAULT_CAMERAS

        summary = stage.render(
            run,
            episode,
            everything=everything,
            look=look,
            looks_per_episode=looks_per_episode,
            cameras=camera or DEFAULT_CAMERAS,
            size=size,
            renderer=renderer,
            workers=workers,
        )
    done = f"{len(summary.rendered)} rendered with {summary.renderer}, {len(summary.skipped)} were there"
    show(summary.to_dict(), as_json, f"{run}: {done}. Next: demomill export {run} --out DIR")


@app.command(epilog="Example: demomill strips out/run --out docs/images/strips")
def strips(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="Folder of the pictures; those of the same name are replaced.")],
    look: Annotated[str, typer.Option(help="Which of the looks of `demomill render`.")] = "plain",
    as_json: Json = False,
) -> None:
    """Picture each task: a strip with one moment of every phase, and a short clip, of one episode that was kept."""
    from pipeline.cli.tables import table
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.strips import strips as draw

        drawn = draw(run, out, look=look)
    rows = [(task, each["episode"], each["strip"], each["clip"]) for task, each in drawn.items()]
    show({"tasks": drawn}, as_json, table(("task", "episode", "strip", "clip"), rows))


@app.command(epilog="Example: demomill export out/run --out out/dataset")
def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="Dataset folder, or HDF5 file; an earlier export there is replaced.")],
    as_format: Annotated[
        Format, typer.Option("--format", help="LeRobot v3.0, or HDF5 in robomimic's layout.")
    ] = "lerobot",
    images: Annotated[
        bool | None, typer.Option(help="With pictures. [default: in a LeRobot dataset, not in an HDF5 file]")
    ] = None,
    camera: Cameras = None,
    task: Annotated[
        list[str] | None, typer.Option(metavar="TASK", help="Task id, may be repeated. [default: all recorded]")
    ] = None,
    look: Annotated[
        list[str] | None, typer.Option(metavar="LOOK", help="Rendering, may be repeated. [default: plain]")
    ] = None,
    quota: Annotated[int, typer.Option(min=1, help="Least number of kept episodes of each task.")] = 1,
    test_fraction: Annotated[float, typer.Option(help="Part of the seeds that forms the split `test`.")] = 0.0,
    privileged: Annotated[bool, typer.Option(help="Export what only a simulator knows, too.")] = True,
    as_json: Json = False,
) -> None:
    """Build a dataset of the rendered episodes that `demomill qc` kept, else of all successes.

    With --no-images of the states alone; nothing need be rendered then.
    """
    from pipeline.cli.tables import table
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.export import choose
        from flows.stages.export import export as build
        from pipeline.errors import UserError
        from pipeline.render.cameras import DEFAULT_CAMERAS

        hdf5 = as_format == "hdf5"
        if camera and images is False:
            raise UserError(f"--no-images leaves nothing of --camera {camera[0]}; give one of the two")
        pictured = bool(camera) or (not hdf5 if images is None else images)
        cameras = camera or DEFAULT_CAMERAS if pictured else ()
        choice = choose(run, task, look, quota, test_fraction=test_fraction, privileged=privileged, cameras=cameras)
        summary = build(run, out, choice, hdf5=hdf5)
    result = {**asdict(summary), "root": str(summary.root), "episodes": summary.episodes}
    done = f"{out}: {summary.episodes} episodes, {summary.frames} frames, {summary.size_bytes / 1e6:.1f} MB"
    show(result, as_json, table(("task", "episodes"), list(summary.episodes_by_task.items())), done)


@app.command(epilog="Example: demomill verify out/dataset --run out/run")
def verify(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Folder of a LeRobot v3.0 dataset.")],
    run: Annotated[Path | None, typer.Option(help="Run folder that it was exported from, to compare with.")] = None,
    as_json: Json = False,
) -> None:
    """Prove that a dataset is whole and equals what was recorded. Exit code 1 if it does not."""
    from pipeline.cli.tables import verification_parts
    from pipeline.cli.terminal import show, working

    with working():
        from flows.reporter import REPORTER
        from pipeline.export.verify import verify as examine

        report = examine(dataset, run, lambda check: REPORTER.get().say(f"verify: {check}"))
    result = report.to_dict()
    show(result, as_json, *verification_parts(result, [str(finding) for finding in report.all_findings()]))
    raise typer.Exit(0 if report.passed else 1)


@app.command(epilog="Example: demomill publish out/dataset user/pegs --release-tag release-1 --run out/run --dry-run")
def publish(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="Folder that `demomill export` made.")],
    repo_id: Annotated[str, typer.Argument(metavar="REPO_ID", help="Name on the Hub, user/name; made if missing.")],
    release_tag: Annotated[str, typer.Option(metavar="TAG", help="Of this release; a tag that exists is not moved.")],
    run: Annotated[
        Path | None, typer.Option(help="Run folder that it was exported from: quality control in the card.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public. [default: private]")] = False,
    licence: Annotated[str, typer.Option("--license", help="Identifier as on the Hub.")] = "apache-2.0",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change, show the card, stop.")] = False,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="Another Hub. [default: HF_ENDPOINT, else huggingface.co]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Release a dataset on the Hugging Face Hub: upload what differs, prove every byte that it serves, then tag it.

    The token is that of `hf auth login`, or HF_TOKEN. The same command again goes on where it broke off.
    """
    from pipeline.cli.tables import publication_parts
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.publish import publish as release

        published = release(
            dataset,
            repo_id,
            release_tag,
            run=run,
            private=not public,
            licence=licence,
            endpoint=endpoint,
            dry_run=dry_run,
        )
    result = published.to_dict()
    show(result, as_json, *publication_parts(result))


@app.command(epilog="Example: demomill generate --out out/demo")
def generate(
    out: Annotated[Path, typer.Option(help="Run folder; made if it is missing, completed if it is there.")],
    task: AnyTasks = None,
    episodes: Annotated[int, typer.Option(help="Attempts of each task.")] = 10,
    num_envs: NumEnvs = 16,
    seed: Seed = 0,
    device: Device = "auto",
    workers: Workers = None,
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder. [default: dataset in the run folder]")] = None,
    as_json: Json = False,
) -> None:
    """Record, judge, render and export in one go. Interrupt it at any time: the same command goes on from there."""
    from pipeline.cli.tables import summary_parts
    from pipeline.cli.terminal import show, working

    with working():
        from flows.reporter import REPORTER
        from flows.server import prefect_server
        from flows.stages.record import request, require_usable
        from pipeline.record import tasks_with_expert

        tasks = task or list(tasks_with_expert())
        dataset = dataset or out / "dataset"
        wanted = request(out, tasks, episodes, seed, num_envs=num_envs, device=device, workers=workers)
        require_usable(wanted, dataset)
        REPORTER.get().say(f"{out}: {episodes} attempts at {', '.join(wanted.tasks)}")
        with prefect_server():
            from flows.generate import generate as flow

            summary = flow(str(out), str(dataset), tasks, episodes, seed, num_envs, device, workers)
    show(summary, as_json, *summary_parts(summary))


@app.command(epilog="Example: demomill merge out/first out/second --out out/run")
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one recipe; only read.")],
    out: Annotated[Path, typer.Option(help="Run folder; made if it is missing, completed if it is there.")],
    as_json: Json = False,
) -> None:
    """Make one run of several of one recipe: episodes, videos and people's decisions, each episode verified.

    An attempt that two of them hold must be the same by its content hash; otherwise nothing is written.
    """
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.merge import merge as unite

        merged = unite(runs, out)
    news = f"{len(merged.new)} episodes copied, {len(merged.episodes) - len(merged.new)} were there"
    show(asdict(merged), as_json, f"{out}: {news}. Next: demomill qc {out}")


@app.command(epilog="Example: demomill manifest out/run --check")
def manifest(
    run: RunFolder,
    check: Annotated[bool, typer.Option("--check", help="Compare the run with its manifest; write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Write down what made a run and the hash of every file, or check them. Exit code 1 if something differs."""
    from pipeline.cli.terminal import show, working

    with working():
        from pipeline.manifest import check_manifest, write_manifest

        found = check_manifest(run) if check else []
        path = run / "manifest.json" if check else write_manifest(run)
    said = "\n".join(found) or (f"{path}: every file is as it was" if check else f"{path}: written")
    show({"manifest": str(path), "findings": found}, as_json, said)
    raise typer.Exit(1 if found else 0)


app.command(epilog="Example: demomill release data/release.toml --out out/release")(release)
app.command(epilog="Example: demomill serve")(serve)


@app.command(epilog="Example: demomill doctor")
def doctor(as_json: Json = False) -> None:
    """Say what this machine can do, what it lacks, and the remedy. Exit code 1 if demomill cannot run."""
    from pipeline.cli.tables import report_table
    from pipeline.cli.terminal import show, working

    with working():
        from pipeline.doctor import diagnose

        report = diagnose()
    verdict = "ready" if report.can_run else "demomill cannot run here yet: see the remedies above"
    show(report.to_dict(), as_json, report_table(report), verdict)
    raise typer.Exit(0 if report.can_run else 1)
