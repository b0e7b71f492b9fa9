"""From kept episodes and their videos to one multi-task LeRobot v3.0 dataset, rebuilt byte for byte at any time.

LeRobot's reader is the judge of what is written here; its writer would decode and encode every picture again.
"""

from pipeline.export.dataset import ExportSummary, export, is_current
from pipeline.export.selection import Choice

__all__ = ["Choice", "ExportSummary", "export", "is_current"]
