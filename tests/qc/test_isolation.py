import subprocess
import sys

FORBIDDEN = (
    "pipeline",
    "experts",
    "randomization",
    "flows",
    "torch",
    "prefect",
    "isaaclab",
    "newton",
    "warp",
    "mujoco",
)


def test_qc_needs_neither_a_simulator_nor_the_rest_of_the_project():
    code = (
        "import pkgutil, importlib, sys, qc\n"
        "for m in pkgutil.walk_packages(qc.__path__, 'qc.'): importlib.import_module(m.name)\n"
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
