"""What is to become of each episode, and why; nothing is edited or deleted."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from qc.embedding import Embedding, embed
from qc.episodes import Damaged, Episode, EpisodeSet
from qc.errors import QcError
from qc.filters.base import NOT_ASSESSED, OUTLIER, Filter
from qc.filters.duplicates import DuplicatesFilter
from qc.filters.idle import IdleFilter
from qc.filters.length import LengthFilter
from qc.filters.mahalanobis import MahalanobisFilter
from qc.filters.neighbours import NeighboursFilter
from qc.settings import Settings

KEEP, DROP, REVIEW, UNASSESSED, FAILED = VERDICTS = ("keep", "drop", "review", "not_assessed", "failed")
FILTERS = tuple(f.name for f in (DuplicatesFilter, IdleFilter, LengthFilter, MahalanobisFilter, NeighboursFilter))
REQUIRED = ("duplicates", "idle")
"""An episode that one of these could not assess is not kept."""

_TEXT = ("episode_id", "task", "content_hash", "outcome", "verdict", "reasons", "explanation", "not_assessed_by")
COLUMNS = (
    "episode_index",
    *_TEXT[:-1],
    *(f"{name}_{number}" for name in FILTERS for number in ("score", "cutoff")),
    _TEXT[-1],
)
