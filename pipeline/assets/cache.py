"""Where built assets and compiled kernels are kept between runs."""

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def cache_dir() -> Path:
    """Cache folder: ``DEMOMILL_CACHE``, else ``.cache`` of a source checkout, else ``~/.cache/demomill``."""
    if override := os.environ.get("DEMOMILL_CACHE"):
        return Path(override)
    if (CHECKOUT / "pyproject.toml").is_file():
        return CHECKOUT / ".cache"
    return Path.home() / ".cache" / "demomill"
