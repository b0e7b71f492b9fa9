"""Whether some envs or files yield worse episodes than others: a fault of a machine is no fault of a task."""

import pandas as pd
from scipy.stats import binomtest

from qc.table import KEEP

_DOUBTFUL = 0.01


def rates(table: pd.DataFrame) -> pd.DataFrame:
    """Part of the episodes that is kept, by env and by data file that holds more than one.

    Returns:
        ``by`` (``env`` or ``file``), ``which``, ``episodes``, ``kept`` (a share), and ``doubtful``: whether so few
        would be kept with a chance below 1 %, corrected for the number of envs or files, if all were alike.
    """
    rows: list[dict[str, object]] = []
    overall = float((table["verdict"] == KEEP).mean()) if len(table) else 0.0
    for by, column in (("env", "env_index"), ("file", "file")):
        groups = [(key, of["verdict"] == KEEP) for key, of in table.groupby(column, dropna=True) if key != ""]
        if by == "file" and all(len(kept) == 1 for _, kept in groups):
            continue
        for key, kept in groups:
            chance = binomtest(int(kept.sum()), len(kept), overall, alternative="less").pvalue if 0 < overall < 1 else 1
            rows.append({"by": by, "which": str(key), "episodes": len(kept), "kept": float(kept.mean()),
                         "doubtful": bool(chance * len(groups) < _DOUBTFUL)})  # fmt: skip
    return pd.DataFrame(rows, columns=["by", "which", "episodes", "kept", "doubtful"])
