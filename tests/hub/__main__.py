"""Start a Hub to try things against.

Point any client at it with ``HF_ENDPOINT=http://127.0.0.1:PORT HF_TOKEN=TOKEN HF_HUB_DISABLE_XET=1``.
"""

import argparse
import json
from pathlib import Path

from tests.hub.faults import Faults
from tests.hub.server import TOKEN, start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hub", description="A Hub to try things against.")
    parser.add_argument("--root", type=Path, required=True, help="folder of its state")
    parser.add_argument("--port", type=int, default=8399)
    parser.add_argument("--token", default=TOKEN, help="the one token that it accepts")
    parser.add_argument("--faults", type=json.loads, default={}, help="""such as '{"flip": "file-000.mp4"}'""")
    options = parser.parse_args()
    with start(options.root, options.port, options.token, Faults(**options.faults)) as hub:
        print(f"export HF_ENDPOINT={hub.url} HF_TOKEN={options.token} HF_HUB_DISABLE_XET=1", flush=True)
        hub.wait()


if __name__ == "__main__":
    main()
