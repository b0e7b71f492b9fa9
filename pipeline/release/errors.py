"""What the Hub's client raises, said in words a user can act on."""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from pipeline.errors import UserError

AGAIN = "run the same command again: what is uploaded stays uploaded"

_BY_STATUS = {
    401: "the Hub rejects the token; log in anew with `hf auth login`, or set HF_TOKEN to a valid one",
    403: "the token may not do this ({told}); take one that may write to this repository",
    404: "there is no such dataset that you may see ({told})",
    412: f"somebody else changed the repository meanwhile; {AGAIN}",
    413: "the Hub takes no file of this size ({told})",
    429: f"the Hub asks to wait; {AGAIN} in a few minutes",
    507: "the Hub has no room left ({told}); free some, then " + AGAIN,
}


def find_endpoint(endpoint: str | None) -> str:
    """Address of the Hub: what was given, else ``HF_ENDPOINT`` as it is now, else huggingface.co.

    Raises:
        UserError: if it is no address.
    """
    found = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{found}: no address of a Hub; give one such as https://huggingface.co")
    return found


def is_passing(error: Exception) -> bool:
    """Whether the same request may well succeed a little later."""
    return isinstance(error, httpx.TransportError) or _status(error) in (429, 500, 502, 503, 504)


def explain(error: BaseException, repo_id: str, endpoint: str) -> str:
    """One line for a user: what went wrong with which repository or file, and what to do."""
    chain = list(_causes(error))
    # Of an upload, the client names the file in an error of its own, above the one that says why.
    uploading = next((text for text in map(str, chain) if text.startswith("Error while uploading")), "")
    about = f"{repo_id}: {uploading.rstrip('.')}" if uploading else repo_id
    root = next((each for each in chain if isinstance(each, httpx.HTTPError | OfflineModeIsEnabled)), error)
    status = _status(root)
    if status is not None:
        told = _told(root)
        return f"{about}: " + _BY_STATUS.get(status, f"the Hub answers {status} ({{told}}); {AGAIN}").format(told=told)
    if isinstance(root, OfflineModeIsEnabled):
        return f"{about}: the Hub's client is told to stay offline; unset HF_HUB_OFFLINE"
    if isinstance(root, httpx.TransportError):
        why = str(root) or type(root).__name__
        return (
            f"{about}: the Hub at {endpoint} cannot be reached ({why}); check the network and HF_ENDPOINT, then {AGAIN}"
        )
    return f"{about}: {' '.join(str(error).split())}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _status(error: BaseException) -> int | None:
    return error.response.status_code if isinstance(error, HfHubHTTPError | httpx.HTTPStatusError) else None


def _told(error: BaseException) -> str:
    assert isinstance(error, HfHubHTTPError | httpx.HTTPStatusError)
    return error.response.headers.get("X-Error-Message") or error.response.reason_phrase
