"""A recipe: everything that decides what is in a release, in one TOML file."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from pipeline.errors import UserError
from pipeline.record import MAX_SEED, tasks_with_expert
from pipeline.render.cameras import DEFAULT_CAMERAS, require_cameras
from pipeline.render.looks import look_names
from pipeline.tasks import get_task

VISIBILITIES = ("private", "public")


@dataclass(frozen=True)
class LookChoice:
    """One of the looks of :mod:`pipeline.render.looks`, and how many draws of it an episode gets."""

    name: str
    per_episode: int = 1

    def __post_init__(self) -> None:
        look_names(self.name, self.per_episode)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the renderings."""
        return look_names(self.name, self.per_episode)


@dataclass(frozen=True)
class Pictures:
    """What is rendered.

    Attributes:
        looks: each episode is exported once in each.
        cameras: names of cameras.
        episodes_per_task: how many of the exported episodes are rendered; 0 means all. With fewer than the quota, the
            rendered ones are a second dataset and the first holds all of them without pictures.
    """

    looks: tuple[LookChoice, ...] = (LookChoice("plain"),)
    cameras: tuple[str, ...] = DEFAULT_CAMERAS
    episodes_per_task: int = 0

    def __post_init__(self) -> None:
        require_cameras(self.cameras)
        if not self.cameras:
            raise UserError("cameras is empty; give at least one")
        if not self.looks:
            raise UserError("looks is empty; give at least one, such as {name = 'plain'}")
        if len(set(self.look_names)) < len(self.look_names):
            raise UserError(f"looks are {', '.join(self.look_names)}; give each once")
        if self.episodes_per_task < 0:
            raise UserError(f"episodes_per_task is {self.episodes_per_task}; give 0 for all, or a number of episodes")

    @property
    def look_names(self) -> tuple[str, ...]:
        """Names of all renderings of an episode."""
        return tuple(name for look in self.looks for name in look.names)


@dataclass(frozen=True)
class Publication:
    """Where a release goes: ``user/name`` on the Hub, under which tag, seen by whom, under which licence."""

    repository: str
    tag: str
    visibility: str = "private"
    licence: str = "apache-2.0"

    def __post_init__(self) -> None:
        from pipeline.release.hub import Repository
        from pipeline.release.plan import require_release_tag

        Repository(self.repository)
        require_release_tag(self.tag)
        if self.visibility not in VISIBILITIES:
            raise UserError(f"visibility is {self.visibility!r}; give one of {', '.join(VISIBILITIES)}")


@dataclass(frozen=True)
class Recipe:
    """What a release consists of.

    Attributes:
        seed: run seed; with task and attempt it fixes every draw of an episode.
        quotas: episodes of each task that are exported.
        test_fraction: part of the seeds whose episodes form the split ``test``.
        keep_list: decisions of people, as ``demomill review`` writes them, relative to the recipe; None for none.
        quality: settings of quality control that differ from the defaults, see :class:`qc.settings.Settings`.
        publication: None for a release that stays here.
        path: file that it was read from.
        text: that file, verbatim.
    """

    seed: int
    quotas: Mapping[str, int]
    test_fraction: float = 0.0
    keep_list: str | None = None
    quality: Mapping[str, Any] = field(default_factory=dict)
    pictures: Pictures = Pictures()
    publication: Publication | None = None
    path: Path = Path()
    text: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= MAX_SEED:
            raise UserError(f"seed is {self.seed}; it must be between 0 and {MAX_SEED}")
        if not 0.0 <= self.test_fraction < 1.0:
            raise UserError(f"test_fraction is {self.test_fraction:g}; it must be at least 0 and less than 1")
        if not self.quotas:
            raise UserError("[quotas] is empty; give a number of episodes for at least one task")
        for task, quota in self.quotas.items():
            if get_task(task).id not in tasks_with_expert():
                raise UserError(f"[quotas] {task} has no expert yet; `demomill tasks` shows which have one")
            if type(quota) is not int or quota < 1:
                raise UserError(f"[quotas] {task} is {quota!r}; give a number of episodes, at least 1")
        if self.keep_list is not None and not self.decisions.is_file():  # type: ignore[union-attr]
            raise UserError(f"keep_list is {self.keep_list!r}, but there is no file {self.decisions}")

    @property
    def episodes(self) -> int:
        """Number of motions in the release."""
        return sum(self.quotas.values())

    @property
    def decisions(self) -> Path | None:
        """File of the keep-list."""
        return self.path.parent / self.keep_list if self.keep_list else None

    @property
    def pictures_apart(self) -> bool:
        """Whether the rendered episodes are a dataset of their own."""
        return 0 < self.pictures.episodes_per_task < max(self.quotas.values())

    def with_pictures(self, per_task: int | None) -> "Recipe":
        """The same recipe with other ``episodes_per_task``, or itself."""
        if per_task is None:
            return self
        return replace(self, pictures=replace(self.pictures, episodes_per_task=per_task))

    def to_dict(self) -> dict[str, Any]:
        """As resolved: defaults filled in, overrides applied; without file and text."""
        return {name: value for name, value in asdict(self).items() if name not in ("path", "text")}


def read_recipe(path: Path | str) -> Recipe:
    """Read and check a recipe; settings of quality control are checked by :func:`flows.stages.recipe.load`.

    Raises:
        UserError: if there is no such file, it is no TOML, a name is unknown, or a value cannot be.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give the path of a recipe (*.toml)") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: not readable as TOML ({error})") from None
    try:
        return _make(Recipe, content, "", path=path, text=text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _make[T](kind: type[T], content: Mapping[str, Any], where: str, **given: object) -> T:
    """A dataclass from a table of TOML."""
    hints = get_type_hints(kind)
    known = {entry.name: entry for entry in fields(kind) if entry.name not in ("path", "text")}  # type: ignore[arg-type]
    for name in content:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is: {', '.join(known)}"
            raise UserError(f"{where}unknown key {name!r}; {hint}")
    for name, entry in known.items():
        if name not in content and entry.default is entry.default_factory:
            raise UserError(f"{where}{name} is missing; add it")
    values = {name: _value(hints[name], value, f"{where}{name}") for name, value in content.items()}
    return kind(**values, **given)


def _value(hint: Any, value: object, name: str) -> Any:
    """A value of TOML as the type of a field."""
    if hint == tuple[LookChoice, ...]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise UserError(f"{name} is {value!r}; give a list of tables such as {{name = 'varied', per_episode = 2}}")
        return tuple(_make(LookChoice, each, f"{name}: ") for each in value)
    if hint == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise UserError(f"{name} is {value!r}; give a list of texts")
        return tuple(value)
    if hint in (Pictures, Publication | None):
        _require(value, dict, name)
        return _make(Pictures if hint is Pictures else Publication, value, f"[{name}] ")  # type: ignore[arg-type]
    if hint is float and type(value) is int:
        return float(value)
    kinds = {int: int, float: float, str: str, str | None: str}
    _require(value, kinds.get(hint, dict), name)
    return value


def _require(value: object, kind: type, name: str) -> None:
    words = {int: "a whole number", float: "a number", str: "a text", dict: "a table"}
    if type(value) is not kind:
        raise UserError(f"{name} is {value!r}; give {words[kind]}")
