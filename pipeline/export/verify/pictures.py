"""Checks of the videos, packet by packet: as many frames as rows, on the grid, and the bytes that were exported."""

from collections.abc import Iterator

from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import EPISODES, TOLERANCE_S, Member, Tree
from pipeline.video import probe, segments


def check_videos(tree: Tree) -> Iterator[Finding]:
    """Every video file and every episode in it."""
    for camera in tree.cameras:
        height, width = tree.info["features"][camera]["shape"][:2]
        for file, members in tree.by_video_file(camera):
            video, rows = probe(tree.root / file), sum(member.length for member in members)
            if (video.height, video.width) != (height, width):
                yield Finding(file, "", f"pictures of {video.width}x{video.height}, info.json says {width}x{height}")
            if video.frames != rows:
                yield Finding(file, "", f"holds {video.frames} frames, its {len(members)} episodes {rows} rows")
            yield from _episodes(tree, camera, file, members)


def _episodes(tree: Tree, camera: str, file: str, members: list[Member]) -> Iterator[Finding]:
    start = 0
    found = segments(tree.root / file, [member.length for member in members], tree.fps)
    for member, segment in zip(members, found, strict=False):
        begin, end = (member.row[f"videos/{camera}/{name}_timestamp"] for name in ("from", "to"))
        wanted = (start / tree.fps, (start + member.length) / tree.fps)
        if max(abs(begin - wanted[0]), abs(end - wanted[1])) > TOLERANCE_S:
            problem = f"{camera} from {begin:.4f} to {end:.4f} s, expected {wanted[0]:.4f} to {wanted[1]:.4f}"
            yield Finding(EPISODES, member.name, problem)
        if segment.frames < member.length:
            yield Finding(file, member.name, f"ends after {segment.frames} of {member.length} frames")
        if segment.off_grid is not None:
            off = segment.off_grid
            yield Finding(file, f"{member.name}, row {off}", f"its frame is not shown at {off}/{tree.fps} s")
        if segment.frames and not segment.begins_with_keyframe and tree.ours:
            yield Finding(file, f"{member.name}, row 0", "its first frame is no keyframe")
        told = member.row.get(f"packets_sha256/{camera}")
        if told and told != segment.sha256:
            yield Finding(file, member.name, "its packets hold other bytes than were exported")
        start += member.length
