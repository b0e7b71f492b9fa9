"""A verification passes on what was exported, and finds whatever is planted in it, by file and row."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import UserError
from pipeline.export import export
from pipeline.export.digests import seal
from pipeline.export.verify import Report, verify
from pipeline.schema import FPS
from pipeline.store import Run
from pipeline.video import encode, remux
from tests.pipeline.factories import make_episode, painted, write_run

EPISODES = (
    make_episode("peg_round_12mm", 1, length=21),
    make_episode("peg_round_4mm", 2, length=40),
    make_episode("peg_round_12mm", 0, length=34),
)
LENGTHS = (40, 34, 21)
NAMES = ("peg_round_4mm-s7-00002", "peg_round_12mm-s7-00000", "peg_round_12mm-s7-00001")
DATA = "data/chunk-000/file-000.parquet"
META = "meta/episodes/chunk-000/file-000.parquet"
FRONT = "videos/observation.images.front/chunk-000/file-000.mp4"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"), EPISODES)


@pytest.fixture(scope="module")
def exported(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run.root, tmp_path_factory.mktemp("out") / "dataset").root


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "dataset"))


def rewrite(path: Path, change: Callable[[dict[str, list[Any]]], object]) -> None:
    """Change the values of a parquet file; types and row groups stay."""
    file = pq.ParquetFile(path)
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    table = file.read()
    columns = table.to_pydict()
    change(columns)
    changed = pa.table(columns, schema=table.schema)
    with pq.ParquetWriter(path, table.schema) as writer:
        start = 0
        for size in sizes if sum(sizes) == changed.num_rows else [changed.num_rows]:
            writer.write_table(changed.slice(start, size))
            start += size


def reseal(root: Path) -> None:
    """Give the files the hashes that they have now, so that only a look inside finds the change."""
    manifest = json.loads((root / "meta/demomill.json").read_text())
    (root / "meta/demomill.json").write_text(json.dumps({**manifest, "files": seal(root)}))


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def one_value(root: Path) -> None:
    rewrite(root / DATA, lambda columns: columns["action"][45].__setitem__(3, 0.125))


def two_rows_swapped(root: Path) -> None:
    def swap(columns: dict[str, list[Any]]) -> None:
        for key in ("observation.state", "action"):
            values = columns[key]
            values[41], values[42] = values[42], values[41]

    rewrite(root / DATA, swap)


def not_a_number(root: Path) -> None:
    rewrite(root / DATA, lambda columns: columns["observation.state"][80].__setitem__(0, float("nan")))


def a_gap_in_the_index(root: Path) -> None:
    rewrite(root / DATA, lambda columns: columns["index"].__setitem__(slice(50, None), range(51, 96)))


def a_late_row(root: Path) -> None:
    rewrite(root / DATA, lambda columns: columns["timestamp"].__setitem__(43, 3.5 / FPS))


def a_row_lost(root: Path) -> None:
    rewrite(root / DATA, lambda columns: [values.pop(60) for values in columns.values()])


def a_foreign_task(root: Path) -> None:
    rewrite(root / DATA, lambda columns: columns["task_index"].__setitem__(5, 1))


def tasks_reordered(root: Path) -> None:
    table = pd.read_parquet(root / "meta/tasks.parquet")
    table.index = pd.Index(table.index[::-1], name="task")
    table.to_parquet(root / "meta/tasks.parquet")


def a_shifted_video(root: Path) -> None:
    key = "videos/observation.images.front/from_timestamp"
    rewrite(root / META, lambda columns: columns[key].__setitem__(1, columns[key][1] + 1 / FPS))


def statistics_retouched(root: Path) -> None:
    change_json(root / "meta/stats.json", lambda stats: stats["action"]["q99"].__setitem__(2, 9.0))


def episode_statistics_retouched(root: Path) -> None:
    rewrite(root / META, lambda columns: columns["stats/action/q01"][2].__setitem__(0, -9.0))


def picture_statistics_retouched(root: Path) -> None:
    change_json(
        root / "meta/stats.json", lambda stats: stats["observation.images.wrist"]["mean"][1].__setitem__(0, [0])
    )


def counts_retouched(root: Path) -> None:
    change_json(root / "meta/info.json", lambda info: info.update(total_frames=96))


def a_split_beyond_the_end(root: Path) -> None:
    change_json(root / "meta/info.json", lambda info: info.update(splits={"train": "0:2", "test": "2:4"}))


def a_split_that_leaks(root: Path) -> None:
    change_json(root / "meta/info.json", lambda info: info.update(splits={"train": "0:2", "test": "2:3"}))
    rewrite(root / META, lambda columns: columns["content_hash"].__setitem__(2, columns["content_hash"][1]))


def a_flipped_byte(root: Path) -> None:
    content = bytearray((root / FRONT).read_bytes())
    content[-100] ^= 0x10
    (root / FRONT).write_bytes(content)


def a_torn_file(root: Path) -> None:
    content = (root / DATA).read_bytes()
    (root / DATA).write_bytes(content[: len(content) // 2])


def a_torn_video(root: Path) -> None:
    (root / FRONT).write_bytes((root / FRONT).read_bytes()[:400])


def a_file_lost(root: Path) -> None:
    (root / FRONT).unlink()


def a_stale_file(root: Path) -> None:
    shutil.copy(root / DATA, root / DATA.replace("file-000", "file-001"))


def join(root: Path, order: tuple[int, ...], frames: tuple[int, ...]) -> None:
    clips = [root.parent / f"{number}.mp4" for number in order]
    for clip, number, count in zip(clips, order, frames, strict=True):
        encode(clip, painted((1, 2, 0)[number], count), FPS)
    remux(clips, root / FRONT, FPS)


def a_column_lost(root: Path) -> None:
    pq.write_table(pq.read_table(root / META).drop_columns(["length"]), root / META)


def a_frame_lost(root: Path) -> None:
    join(root, (0, 1, 2), (40, 33, 21))


def a_video_of_another_episode(root: Path) -> None:
    """As many frames as before, but those of episode 0 stand where those of episode 1 belong."""
    for number in (0, 1):
        encode(root.parent / f"{number}.mp4", painted(1, LENGTHS[number]), FPS)
    encode(root.parent / "2.mp4", painted(0, 21), FPS)
    remux([root.parent / f"{number}.mp4" for number in range(3)], root / FRONT, FPS)


def a_late_frame(root: Path) -> None:
    with av.open(str(root / FRONT)) as source, av.open(str(root.parent / "late.mp4"), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0], opaque=True)
        packets = [packet for packet in source.demux(video=0) if packet.dts is not None]
        for number, packet in enumerate(packets):
            packet.stream = stream
            if number >= 50:
                packet.pts = packet.dts = int(packet.pts or 0) + 400
            target.mux_one(packet)
    shutil.move(root.parent / "late.mp4", root / FRONT)


PLANTED: dict[Callable[[Path], None], tuple[str, str, str]] = {
    one_value: (DATA, rf"rows 40 to 73, episode 1 \({NAMES[1]}\)", "rows_sha256"),
    two_rows_swapped: (DATA, r"rows 40 to 73, episode 1 ", "rows_sha256"),
    not_a_number: (DATA, r"row 80, episode 2 ", "(?s)observation.state is .*not finite"),
    a_gap_in_the_index: (DATA, r"row 50, episode 1 ", "index is 51, expected 50; 23 more rows"),
    a_late_row: (DATA, r"row 43, episode 1 ", "timestamp is 0.23"),
    a_row_lost: (DATA, r"row 60, episode 1 ", "frame_index is 21, expected 20"),
    a_foreign_task: (DATA, r"row 5, episode 0 ", "task is pick up the 12 mm"),
    tasks_reordered: (DATA, r"row 0, episode 0 ", "task is pick up the 12 mm"),
    a_shifted_video: ("meta/episodes", r"episode 1 ", "observation.images.front from 2.7333"),
    statistics_retouched: ("meta/stats.json", "action", r"q99\[2\] is 9, computed again"),
    episode_statistics_retouched: ("meta/episodes", r"episode 2 .*, action", r"q01\[0\] is -9"),
    picture_statistics_retouched: ("meta/stats.json", "observation.images.wrist", r"mean\[1\] is 0"),
    counts_retouched: ("meta/info.json", "", "total_frames is 96 but there are 95"),
    a_split_beyond_the_end: ("meta/info.json", "split test", "'2:4', no range of the 3 episodes"),
    a_split_that_leaks: ("meta/info.json", "split test, episode 2 ", "the same motion is in split train as episode 1"),
    a_flipped_byte: (FRONT, r"episode 2 ", "packets hold other bytes"),
    a_torn_file: (DATA, "", "cannot be read"),
    a_torn_video: (FRONT, "", "cannot be read"),
    a_file_lost: (FRONT, r"episode 0 ", "is missing"),
    a_stale_file: (DATA.replace("file-000", "file-001"), "", "no episode lies in it"),
    a_column_lost: (META, "", "lacks the columns length"),
    a_frame_lost: (FRONT, "", "holds 94 frames, its 3 episodes 95 rows"),
    a_video_of_another_episode: (FRONT, rf"episode 1 \({NAMES[1]}\)", "packets hold other bytes"),
    a_late_frame: (FRONT, r"episode 1 .*row 10", "not shown at 10/15 s"),
}


def found(report: Report, file: str, where: str, problem: str) -> bool:
    return any(
        finding.file == file and re.match(where, finding.where) and re.search(problem, finding.problem)
        for finding in report.all_findings()
    )


def test_an_export_passes_alone_and_against_its_run(run: Run, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    alone = verify(exported)
    monkeypatch.setattr("pipeline.export.verify.reading.WINDOW", 16)
    for report in (alone, verify(exported, run.root, told.append)):
        assert report.passed, [str(finding) for finding in report.all_findings()]
        assert (report.episodes, report.frames) == (3, 95)
    assert {"rows of the run", "packets of the run", "LeRobot, windows", "statistics", "hashes"} <= set(report.findings)
    assert told == list(report.findings)
    assert set(report.skipped) <= {"LeRobot, stream"}
    assert str(run.root) not in "".join(p.read_text() for p in exported.rglob("*.json"))


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_by_file_and_row(copy: Path, plant: Callable[[Path], None]) -> None:
    plant(copy)
    reseal(copy)
    report = verify(copy)
    assert not report.passed
    assert found(report, *PLANTED[plant]), [str(finding) for finding in report.all_findings()]


@pytest.mark.parametrize("plant", [one_value, a_flipped_byte, counts_retouched, a_file_lost, a_stale_file])
def test_hashes_alone_find_any_changed_file(copy: Path, plant: Callable[[Path], None]) -> None:
    plant(copy)
    hashes = verify(copy).findings["hashes"]
    assert [finding.file for finding in hashes] == [PLANTED[plant][0]]


def test_the_run_tells_row_column_and_value(run: Run, copy: Path) -> None:
    one_value(copy)
    (finding,) = verify(copy, run.root).findings["rows of the run"]
    assert finding.file == DATA
    assert finding.where == f"row 45, episode 1 ({NAMES[1]}), frame 5"
    assert re.search("action is .*0.125.*, the run has .*; 1 rows differ", finding.problem, re.DOTALL)


def test_what_was_resealed_in_every_place_still_differs_from_the_run(run: Run, copy: Path) -> None:
    a_video_of_another_episode(copy)
    rewrite(copy / META, lambda columns: columns["seed"].__setitem__(0, 1))
    report = verify(copy, run.root)
    packets = report.findings["packets of the run"]
    assert [(finding.file, finding.where) for finding in packets] == [(FRONT, f"episode 1 ({NAMES[1]})")]
    assert any("seed is 1, the run has" in finding.problem for finding in report.findings["rows of the run"])
    pictures = report.findings["LeRobot, windows"]
    assert pictures[0].where == f"episode 1 ({NAMES[1]}), row 0"
    assert "another observation.images.front" in pictures[0].problem


def test_an_episode_that_left_the_run_is_named(run: Run, copy: Path, tmp_path: Path) -> None:
    other = Run(Path(shutil.copytree(run.root, tmp_path / "run")))
    shutil.rmtree(other.folder("peg_round_4mm", NAMES[0]))
    report = verify(copy, other.root)
    assert found(report, DATA, r"episode 0 ", "the run has no such episode")
    assert found(report, FRONT, r"episode 0 ", "the run has no such video")


def test_what_is_no_dataset_or_another_run_is_refused(run: Run, copy: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no LeRobot dataset here"):
        verify(tmp_path / "nothing")
    with pytest.raises(UserError, match="no run here"):
        verify(copy, tmp_path)
    other = Run.open(tmp_path / "other", {"run_seed": 8})
    with pytest.raises(UserError, match="not the run that"):
        verify(copy, other.root)
    change_json(copy / "meta/info.json", lambda info: info.update(codebase_version="v2.1"))
    with pytest.raises(UserError, match=r"a LeRobot v2\.1 dataset; only v3\.0"):
        verify(copy)
    change_json(copy / "meta/info.json", lambda info: info.update(codebase_version="v3.0"))
    (copy / "meta/demomill.json").write_text("{")
    with pytest.raises(UserError, match=r"demomill\.json: not readable as a manifest"):
        verify(copy, run.root)
    change_json(copy / "meta/info.json", lambda info: info.pop("features"))
    with pytest.raises(UserError, match=r"not readable as a dataset description .*features"):
        verify(copy)
    (copy / "meta/info.json").write_text("{")
    with pytest.raises(UserError, match="not readable as a dataset description"):
        verify(copy)


def test_a_dataset_of_others_is_checked_as_far_as_it_goes(copy: Path) -> None:
    (copy / "meta/demomill.json").unlink()
    report = verify(copy)
    assert report.passed, [str(finding) for finding in report.all_findings()]
    assert "no manifest" in report.skipped["hashes"]
    a_gap_in_the_index(copy)
    assert found(verify(copy), *PLANTED[a_gap_in_the_index])


def test_the_stream_is_read_where_torchcodec_finds_ffmpeg(exported: Path, tmp_path: Path) -> None:
    """PyAV brings the libraries that torchcodec looks for, under other names."""
    bundled = Path(av.__file__).parent.with_name("av.libs")
    for library in bundled.glob("lib[as][vw]*.so.*"):
        name, _, version = library.name.partition(".so.")
        (tmp_path / f"{name.rsplit('-', 1)[0]}.so.{version.split('.')[0]}").symlink_to(library)
    script = f"from pipeline.export.verify import verify; print(verify({str(exported)!r}).to_dict())"
    path = f"{tmp_path}:{bundled}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_LIBRARY_PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    if "torchcodec finds no FFmpeg" in done.stdout:
        pytest.skip("PyAV's libraries are not those that torchcodec wants")
    assert "'skipped': {}" in done.stdout
    assert "'passed': True" in done.stdout
    assert "LeRobot, stream" in done.stdout
