"""How much of each planted defect quality control finds, and what it costs. Run as ``python -m bench.detection [PNG]``.

Healthy episodes of each family are recorded, defects are planted into them four at a time (:mod:`qc.inject`), and each
task is judged. The curves go into the picture, which is ``docs/images/detection.png``.
"""

import json
import sys
import tempfile
from pathlib import Path

from pipeline.engine import choose_engine
from pipeline.record import Request, record
from qc.detection import detection_curves
from qc.figures import curves_figure
from qc.readers.run import read_run

TASKS = ("peg_round_8mm", "peg_square_12mm", "gear_medium", "nut_M12")
RECORDED_OF_EACH = 48
TRIALS = 2
SEED = 9000
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "detection.png"


def main() -> None:
    """Record, plant, judge, draw."""
    with tempfile.TemporaryDirectory() as scratch:
        recorded = Path(scratch) / "recorded"
        record(Request(recorded, TASKS, RECORDED_OF_EACH, SEED, choose_engine("cpu")))
        episodes = [e for e in read_run(recorded).episodes if e.succeeded]
    curves = detection_curves(episodes, trials=TRIALS)
    curves_figure(curves).savefig(sys.argv[1] if len(sys.argv) > 1 else PICTURE, dpi=110, metadata={"Software": None})
    moderate = curves[curves["moderate"]].groupby("defect", sort=False)[["found", "planted"]].sum()
    found = {str(defect): float(row["found"] / row["planted"]) for defect, row in moderate.iterrows()}
    false = float(curves["false"].sum() / curves["healthy"].sum())
    print("\nRESULT " + json.dumps({"found": found, "false": false, "healthy": int(curves["healthy"].sum())}))


if __name__ == "__main__":
    main()
