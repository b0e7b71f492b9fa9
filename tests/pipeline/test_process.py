"""No process outlives the one that started it, however early that one is killed."""

import os
import subprocess
import sys
import time

import pytest

from tests.killing import wait_until_gone

CHILD = """
import sys, time
from pipeline.process import die_with_parent
time.sleep({early_s})
die_with_parent(int(sys.argv[1]))
time.sleep(60)
"""

PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2]])
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("early_s", [0.0, 0.5])
def test_a_child_ends_with_its_parent_and_also_if_that_ended_before_it_asked(early_s: float) -> None:
    mark = f"of-test-{os.getpid()}-{early_s}"
    command = [sys.executable, "-c", PARENT, CHILD.format(early_s=early_s), mark]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        time.sleep(0.0 if early_s else 0.3)
        parent.kill()
    wait_until_gone(mark)
