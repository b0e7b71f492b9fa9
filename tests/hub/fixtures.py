"""How a test reaches a Hub of its own, with the real client unpatched but for its switches."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.hub.server import TestHub, start


@contextmanager
def logged_in(root: Path) -> Iterator[TestHub]:
    """A Hub that ``HF_ENDPOINT`` and ``HF_TOKEN`` lead to, in this process and in those that it starts."""
    with start(root) as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.setenv("HF_TOKEN", hub.token)
        patch.setenv("HF_HUB_DISABLE_XET", "1")
        # The client reads that switch when it is imported, which other tests have done.
        patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        yield hub
