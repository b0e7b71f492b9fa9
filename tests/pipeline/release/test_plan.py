"""What a release may be called, what the Hub can serve, and what of a card is people's own."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pipeline.errors import UserError
from pipeline.export import export
from pipeline.export.card import BEGIN, END, card, merge
from pipeline.release import plan, verify
from pipeline.release.errors import find_endpoint
from pipeline.release.files import File
from pipeline.release.hub import Remote, Served
from pipeline.release.plan import make_plan, require_release_tag, require_servable
from pipeline.release.quality import Quality
from pipeline.store import Run
from tests.pipeline.factories import make_episode, write_run


def served(file: File, *, large: bool) -> Served:
    return Served(file.size, file.git_sha1 if not large else "0" * 40, file.sha256 if large else None)


def test_a_plan_compares_large_files_by_sha256_and_small_ones_by_gits_hash() -> None:
    same, small, other, new = (File(f"data/{name}", name.encode()) for name in ("same", "small", "other", "new"))
    there = {
        "data/same": served(same, large=True),
        "data/small": served(small, large=False),
        "data/other": Served(other.size, other.git_sha1, "f" * 64),
        "videos/old": served(same, large=True),
        "notes.txt": served(small, large=False),
    }
    remote = Remote("c" * 40, False, there, {}, "")
    made = make_plan("me/pegs", "r1", [same, small, other, new], "", remote, private=True)
    assert (made.new, made.changed, made.stale, made.foreign) == (
        ("data/new",),
        ("data/other",),
        ("videos/old",),
        ("notes.txt",),
    )
    assert made.upload_bytes == len("new") + len("other")
    assert not made.private, "a repository that exists keeps its visibility"
    assert json.loads(json.dumps(made.to_dict()))["stale"] == ["videos/old"]
    assert not make_plan(
        "me/pegs", "r1", [same], "", Remote("c", files={"data/same": there["data/same"]}), private=True
    ).changes


@pytest.mark.parametrize("tag", ["v3.0", "1.0", "2026.12.2", "v1.0.0rc1"])
def test_a_tag_that_lerobot_takes_for_a_format_is_refused(tag: str) -> None:
    with pytest.raises(UserError, match=f"LeRobot would take this tag .* release-{tag}"):
        require_release_tag(tag)


@pytest.mark.parametrize("tag", ["", "main", "-x", "a b", "a..b", "x/y", "r1.lock", "r1\n"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(UserError, match="no tag"):
        require_release_tag(tag)


def test_usual_tags_are_taken() -> None:
    for tag in ("release-1", "r1", "2026-12-02", "pegs_v1.0"):
        require_release_tag(tag)


def test_what_the_hub_serves_badly_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [File(f"videos/a/{number}", b"") for number in range(plan.MOST_IN_A_FOLDER)]
    require_servable(files[1:])
    with pytest.raises(UserError, match="videos/a: 10000 files; the Hub takes less than 10000 in a folder"):
        require_servable(files)
    monkeypatch.setattr(plan, "MOST_FILES", 100)
    with pytest.raises(UserError, match="10000 files; the Hub takes less than 100 in a repository"):
        require_servable(files)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).random(2**18)}), path, row_group_size=2**17)
    require_servable([File("data/a.parquet", path)])
    monkeypatch.setattr(plan, "ROW_GROUP_MIB", 1)
    with pytest.raises(UserError, match=r"data/a.parquet: row group 0 has 1 MiB; the Hub's viewer reads less than 1"):
        require_servable([File("data/a.parquet", path)])


def test_a_release_that_cannot_be_verified_here_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    verify.require_room([File("data/a", b"x")])
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 0}))
    with pytest.raises(UserError, match="set TMPDIR to a larger disk"):
        verify.require_room([File("data/a", b"x")])


def test_people_s_words_survive_a_new_card(dataset: Path) -> None:
    old, new = card(dataset, name="me/pegs", revision="r1"), card(dataset, name="me/pegs", revision="r2")
    assert merge(new, "") == new
    assert merge(new, old) == new, "nothing was added"
    mine = old.replace(BEGIN, f"Look at this first.\n\n{BEGIN}") + "\n## Thanks\n\n- to all\n"
    mine = mine.replace("license: apache-2.0", "license: mit\npretty_name: Mine", 1)
    merged = merge(new, mine)
    assert merged.index("Look at this first.") < merged.index(BEGIN)
    assert merged.endswith(f"{END}\n\n## Thanks\n\n- to all\n")
    assert "pretty_name: Mine" in merged
    assert "license: apache-2.0" in merged
    assert 'revision="r2"' in merged
    assert 'revision="r1"' not in merged
    assert merge(new, merged) == merged
    assert merge(new, "# Hand-written\n").endswith(f"{END}\n\n# Hand-written\n")


def test_the_card_tells_the_account_of_quality_control(assessed: Run, dataset: Path, tmp_path: Path) -> None:
    quality = Quality.of(assessed.root, dataset)
    text = card(dataset, sections=quality.sections)
    assert "| nut_M8 | 9 | 3 | 2 (idle 2) | 0 | 4 (dropped 1, no grasp 3) | 0 |" in text
    assert "](card/pca.png)" in text
    chart, scatter = quality.pictures
    assert scatter == File("card/pca.png", assessed.root / "qc" / "pca.png")
    assert chart == File("card/accounting.png", Quality.of(assessed.root, dataset).pictures[0].source)
    bars = np.asarray(Image.open(io.BytesIO(chart.source)).convert("RGB")).reshape(-1, 3)  # type: ignore[arg-type]
    widths = [(bars == colour).all(axis=1).sum() for colour in ((0, 114, 178), (213, 94, 0), (204, 121, 167))]
    assert widths[0] / widths[2] == pytest.approx(3 / 4, rel=0.15)
    assert widths[1] / widths[2] == pytest.approx(2 / 4, rel=0.15)
    (assessed.root / "qc" / "accounting.json").unlink()
    with pytest.raises(UserError, match="quality control did not assess it; run `demomill qc"):
        Quality.of(assessed.root, dataset)
    other = Run.open(tmp_path / "other", {"run_seed": 8})
    with pytest.raises(UserError, match="was exported from another run"):
        Quality.of(other.root, dataset)


def test_the_endpoint_is_what_is_asked_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1/")
    assert find_endpoint(None) == "http://127.0.0.1:1"
    assert find_endpoint("https://hub.example/") == "https://hub.example"


def test_the_card_tells_within_which_ranges_was_drawn(tmp_path: Path) -> None:
    episodes = [make_episode("peg_round_8mm", attempt) for attempt in range(3)]
    run = write_run(tmp_path / "run", episodes)
    for folder, warmth in zip(run.folders(), (0.25, -0.5, 0.125), strict=True):
        look = {"name": "plain", "sensor": {"gain": warmth}, "draws": {"warmth": warmth, "shade": 1.0}}
        (folder / "plain.json").write_text(json.dumps({"settings": {"renderer": "mujoco", "look": look}}))
    text = card(export(run.root, tmp_path / "dataset").root)
    rows = {line.split(" | ")[0].strip("| `"): line for line in text.splitlines() if line.startswith("| `")}
    drawn = [episode.draws["start"]["held_x_m"] for episode in episodes]
    assert rows["start.held_x_m"] == f"| `start.held_x_m` | {min(drawn):.4g} | {max(drawn):.4g} |"
    assert rows["look.warmth"] == "| `look.warmth` | -0.5 | 0.25 |"
    assert not {"look.shade", "look.sensor.gain", "competence.grasp_dwell_steps"} & rows.keys()
