"""``demomill release`` and ``demomill recipe check``: from a recipe to datasets."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

recipe = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Recipes of releases.",
    epilog="Example: demomill recipe check data/release.toml",
)

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="Recipe, a TOML file.")]
PicturesPerTask = Annotated[
    int | None,
    typer.Option(min=0, help="Episodes of each task that are rendered; 0 means all. [default: as the recipe says]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@recipe.command(epilog="Example: demomill recipe check data/release.toml")
def check(
    path: RecipeFile,
    pictures_per_task: PicturesPerTask = None,
    sample: Annotated[bool, typer.Option(help="Record and render a little, to say what the release will cost.")] = True,
    as_json: Json = False,
) -> None:
    """Check a recipe, and print what it plans and what that will cost on this machine."""
    from pipeline.cli.tables import table
    from pipeline.cli.terminal import show, working

    with working():
        from flows.stages.estimate import estimate, plan
        from flows.stages.recipe import load

        wanted = load(path, pictures_per_task)
        planned = plan(wanted)
        cost = estimate(wanted) if sample else None
    rows = [(task, *each.values()) for task, each in planned.items()]
    total = ("all", *(sum(each[key] for each in planned.values()) for key in ("episodes", "attempts", "videos")))
    parts: list[Any] = [table(("task", "episodes", "attempts at first", "videos"), [*rows, total])]
    if cost:
        parts.append(table(("stage", "expected minutes here"), [(k, f"{v / 60:.1f}") for k, v in cost.items()]))
    show({"recipe": wanted.to_dict(), "plan": planned, "seconds": cost}, as_json, *parts, f"{path}: is sound")


def release(
    path: RecipeFile,
    out: Annotated[Path, typer.Option(help="Run folder; made if it is missing, completed if it is there.")],
    pictures_per_task: PicturesPerTask = None,
    review: Annotated[
        Literal["wait", "go-on"], typer.Option(help="Stop where a person should decide, or go on without.")
    ] = "wait",
    publish: Annotated[bool, typer.Option("--publish", help="Publish where the recipe says.")] = False,
    num_envs: Annotated[int, typer.Option(help="Parallel envs of a worker; does not change the episodes.")] = 16,
    device: Annotated[str, typer.Option(help="auto, cpu or a CUDA device such as cuda:0.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Worker processes. [default: by cores and memory]")] = None,
    runner: Annotated[Literal["threads", "dask"], typer.Option(help="What runs the shards.")] = "threads",
    as_json: Json = False,
) -> None:
    """Make a release: record until every quota is kept, judge, render, export, publish.

    Stop it at any time: the same command goes on from there.
    """
    from pipeline.cli.tables import release_parts
    from pipeline.cli.terminal import show, working

    with working():
        from flows.server import prefect_server
        from flows.stages.recipe import load

        load(path, pictures_per_task)
        with prefect_server():
            from flows.release import release as flow

            made = flow(
                str(path),
                str(out),
                pictures_per_task,
                review,
                publish=publish,
                num_envs=num_envs,
                device=device,
                workers=workers,
                runner=runner,
            )
    show(made, as_json, *release_parts(made, out))


def serve(
    port: Annotated[int, typer.Option(help="Of Prefect's UI, where PREFECT_API_URL names no server.")] = 4200,
) -> None:
    """Offer releases in Prefect's UI: start them there from a form, watch, answer what needs a person, cancel.

    Runs until Ctrl-C. Paths in the form are relative to the folder in which this was started.
    """
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO")
    from pipeline.cli.terminal import working

    with working():
        from flows.server import prefect_server

        with prefect_server(ui_port=port):
            from flows.serve import serve as serve_flows

            serve_flows()
