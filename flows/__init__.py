"""Prefect flows. Prefect works quietly and in a home of its own: the user's profile and database are left alone."""

import os

from pipeline.assets.cache import cache_dir

for _name, _value in {
    "PREFECT_HOME": str(cache_dir() / "prefect"),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
}.items():
    os.environ.setdefault(_name, _value)
