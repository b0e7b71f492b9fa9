"""One flow run at a time in a run folder."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UserError


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Hold a run folder; the system lets go of it when this process ends, however it ends.

    Raises:
        UserError: if another flow run holds it.
    """
    with (root / ".flow.lock").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{root}: another release is at work here; wait for it, or choose another --out") from None
        yield
