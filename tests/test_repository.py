"""The rules of the rooms: who may import whom, how long a file may be, and that what is imported is declared."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

from bench import release_page
from bench.tasks_page import measured, page

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("pipeline", "experts", "randomization", "qc", "flows", "bench", "tests")
SOURCES = sorted(chain.from_iterable((ROOT / room).rglob("*.py") for room in ROOMS))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())

SIMULATORS = {"isaaclab", "isaaclab_newton", "isaaclab_physx", "isaacsim", "newton", "mujoco_warp", "warp", "pxr"}
FORBIDDEN = {
    "pipeline": {"flows", "qc", "bench", "tests", "prefect"},
    "pipeline/cli": {"bench", "tests", "prefect"},
    "experts": {*SIMULATORS, "mujoco", "pipeline", "qc", "flows", "bench", "tests", "prefect"},
    "randomization": {
        *SIMULATORS,
        "mujoco",
        "torch",
        "pipeline",
        "experts",
        "qc",
        "flows",
        "bench",
        "tests",
        "prefect",
    },
    "qc": {
        *SIMULATORS,
        "mujoco",
        "torch",
        "pipeline",
        "experts",
        "randomization",
        "flows",
        "bench",
        "tests",
        "prefect",
    },
    "flows": {"bench", "tests"},
}
COMES_WITH = {
    "huggingface-hub": {"httpx"},
    "isaaclab": {"mujoco-warp", "torch", "usd-exchange", "warp-lang"},
    "lerobot": {"datasets", "torchcodec"},
    "nbclient": {"nbformat"},
    "prefect": {"pydantic", "uvicorn"},
    "prefect-dask": {"dask"},
}
"""Parts of a dependency's own interface, at the version that it pins."""


def imports(path: Path) -> set[str]:
    """Top-level names of every module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(str(node.module).split(".")[0])
    return found


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def distribution(requirement: str) -> str:
    """Normalised name of a requirement such as ``lerobot[dataset]>=0.6``."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    parts, found = path.relative_to(ROOT).parts, imports(path)
    room = "pipeline/cli" if parts[:2] == ("pipeline", "cli") else parts[0]
    assert not found & FORBIDDEN.get(room, set())
    if "sim" not in parts and room != "bench":
        assert not found & SIMULATORS, "only pipeline/sim may import the simulator"


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_module_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= (100 if path.is_relative_to(ROOT / "flows") else 500)


def test_what_is_imported_is_declared() -> None:
    """A dependency of a dependency may go away with its next version."""
    groups = PROJECT["dependency-groups"]
    declared = {distribution(r) for r in chain(PROJECT["project"]["dependencies"], *groups.values())}
    declared |= set(chain.from_iterable(COMES_WITH[name] for name in declared & set(COMES_WITH)))
    providers = packages_distributions()
    for path in SOURCES:
        for module in imports(path) - set(sys.stdlib_module_names) - set(ROOMS):
            names = {distribution(name) for name in providers[module]}
            assert names & declared, f"{shown(path)} imports {module}, of {', '.join(names)}"


def test_the_lock_file_knows_every_requirement() -> None:
    locked = {package["name"]: package for package in LOCK["package"]}
    own = locked[PROJECT["project"]["name"]]
    for declared, known in (
        (PROJECT["project"]["dependencies"], own["metadata"]["requires-dist"]),
        (PROJECT["dependency-groups"]["dev"], own["metadata"]["requires-dev"]["dev"]),
    ):
        wanted = {distribution(r): sorted(re.sub(r"^[^<>=~!]*", "", r).split(",")) for r in declared}
        assert wanted == {entry["name"]: sorted(entry.get("specifier", "").split(",")) for entry in known}
        assert set(wanted) <= set(locked)
    assert own["version"] == PROJECT["project"]["version"]


def test_nothing_points_into_one_machine() -> None:
    files = [*SOURCES, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not re.search(r"/(home|root|work|Users)/\w", line) or path == Path(__file__), (
                f"{shown(path)}:{number}"
            )


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{shown(path)} links to {target}"


def test_the_readme_names_every_target_of_the_makefile_that_a_user_needs() -> None:
    makefile, readme = (ROOT / "Makefile").read_text(), (ROOT / "README.md").read_text()
    targets = re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE)
    assert {"help", "demo", "test", "bench", "lint", "format", "clean"} <= set(targets)
    for command in ("make demo", "make test", "make bench"):
        assert command in readme
    assert set(re.findall(r"make ([a-z]+)", readme)) <= set(targets)


def test_the_page_of_tasks_is_what_was_measured_and_drawn() -> None:
    text = (ROOT / "docs" / "tasks.md").read_text()
    assert text == page(measured()), "run `python -m bench.tasks_page`"
    for picture in re.findall(r"\((images/strips/.*?)\)", text):
        assert (ROOT / "docs" / picture).stat().st_size > 10_000


def test_the_release_page_says_what_the_release_left_behind():
    text = (release_page.FOLDER / "README.md").read_text()
    assert text == release_page.page(), "run `python -m bench.release_page`"
