"""From a dataset folder to a release on the Hugging Face Hub, proved to be what the Hub serves.

The client is ``huggingface_hub``; the token is the environment's or the one of its own login, and never passes through
here.
"""

from pipeline.release.plan import Plan
from pipeline.release.publication import Published, publish

__all__ = ["Plan", "Published", "publish"]
