"""Prefect flows. Unless the user's environment says otherwise, Prefect works quietly, in a home of its own.

The user's Prefect profile and database are left alone, and a temporary server serves each flow run. Set
``PREFECT_API_URL`` to see the runs on a server of your own.
"""

import os

from pipeline.assets.cache import cache_dir

for _name, _value in {
    "PREFECT_HOME": str(cache_dir() / "prefect"),
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
}.items():
    os.environ.setdefault(_name, _value)
