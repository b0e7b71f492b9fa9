"""How much of each planted defect quality control finds, and what it costs. Run as ``python -m bench.detection [RUN]``.

Healthy episodes of every task are recorded, or taken from a run, and judged as they are; then defects are planted into
them four at a time (:mod:`qc.inject`) and each task is judged again. The curves are ``docs/images/detection.png``.
"""

import json
import sys
import tempfile
from pathlib import Path

from pipeline.engine import choose_engine
from pipeline.record import Request, record, tasks_with_expert
from qc.detection import detection_curves
from qc.figures import curves_figure
from qc.readers.run import read_run
from qc.table import KEEP
from qc.verdicts import assess

RECORDED_OF_EACH = 48
TRIALS = 2
SEED = 9000
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "detection.png"


def main() -> None:
    """Record, judge, plant, judge, draw."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "recorded"
        if root.is_relative_to(scratch):
            record(Request(root, tuple(tasks_with_expert()), RECORDED_OF_EACH, SEED, choose_engine("cpu")))
        episodes = [e for e in read_run(root).episodes if e.succeeded]
    table = assess(episodes)
    flagged = table.loc[table["verdict"] != KEEP, "task"].value_counts()
    curves = detection_curves(episodes, trials=TRIALS)
    curves_figure(curves).savefig(PICTURE, dpi=110, metadata={"Software": None})
    sums = (
        curves.groupby(["defect", "severity", "unit", "moderate"], sort=False)[["found", "planted"]].sum().reset_index()
    )
    result = {
        "found": sums[sums["moderate"]].drop(columns="moderate").to_dict("records"),
        "flagged": {str(task): int(count) for task, count in flagged.items()},
        "episodes": len(table),
        "beside": {"false": int(curves["false"].sum()), "healthy": int(curves["healthy"].sum())},
    }
    print("\nRESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
