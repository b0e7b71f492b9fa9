"""The console command ``demomill``: what a user types, and the one line that answers a mistake."""

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import UserError
from qc.errors import QcError

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Returns:
        Exit code: 0, 2 for bad input, 130 for Ctrl-C, 1 for anything unforeseen. Errors are one line on standard error.
    """
    from typer.exceptions import TyperException
    from typer.main import get_command

    from pipeline.cli.app import app

    try:
        code = get_command(app).main(list(arguments), prog_name="demomill", standalone_mode=False) or 0
        sys.stdout.flush()
    except (UserError, QcError) as error:
        return _complain(str(error), 2)
    except TyperException as error:
        return _complain(error.format_message(), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return 1
    except Exception as error:
        return _complain(f"unexpected {type(error).__name__}: {error}; details are in {_keep_traceback()}", 1)
    if code == INTERRUPTED:
        return _complain("interrupted; what is done is kept, and the same command goes on from there", code)
    return int(code)


def _complain(message: str, code: int) -> int:
    print(f"demomill: {' '.join(message.split())}", file=sys.stderr)
    return code


def _keep_traceback() -> Path:
    from pipeline.assets.cache import cache_dir

    for folder in (cache_dir(), Path(tempfile.gettempdir())):
        log = folder / "demomill-error.log"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            log.write_text(traceback.format_exc())
            break
    return log
