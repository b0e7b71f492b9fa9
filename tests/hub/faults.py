"""What a Hub can get wrong."""

from dataclasses import dataclass, field


@dataclass
class Faults:
    """Set while the server runs; the defaults do nothing.

    Attributes:
        errors: by part of a path, how many requests to it are answered with status 500.
        drops: by part of a path, how many requests to it break off before anything is done.
        lost: by part of a path, how many requests to it are carried out and break off without an answer.
        flip: end of the path of a file of which the first byte is served wrong.
        truncate: end of the path of a file of which only the first half is served.
        stale: end of the path of a file that is served as it was in the first commit that had it.
        keep_deleted: deletions are confirmed and not made.
        move_tags: tags are set at the parent of the commit that was asked for.
        room_bytes: LFS objects that fit; more are refused with status 507.
        seconds_per_mb: time that an upload takes.
    """

    errors: dict[str, int] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    flip: str = ""
    truncate: str = ""
    stale: str = ""
    keep_deleted: bool = False
    move_tags: bool = False
    room_bytes: float = float("inf")
    seconds_per_mb: float = 0.0

    def strikes(self, kind: str, path: str) -> bool:
        """Whether this request fails; uses up one of that kind."""
        counts: dict[str, int] = getattr(self, kind)
        for part, left in counts.items():
            if part in path and left > 0:
                counts[part] = left - 1
                return True
        return False
