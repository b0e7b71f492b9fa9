"""A small Hub that speaks the protocol of the real client, with its state on disk and faults on demand.

``python -m tests.hub --root DIR --port N`` starts one for people; tests start it in a thread.
"""

from tests.hub.faults import Faults
from tests.hub.server import TestHub, start

__all__ = ["Faults", "TestHub", "start"]
