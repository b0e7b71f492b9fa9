"""The notebooks run from top to bottom in a kernel of their own on a small dataset, and hold no output of another."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.qc.datasets import write_dataset
from tests.qc.factories import change, freeze, make_task, write_run

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
FIGURES = {"read_the_data": 2, "spot_outliers": 5}


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == list(FIGURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_short_and_without_output(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert len(notebook.cells) <= 20
    assert all(cell.outputs == [] for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize(
    ("name", "kind"), [("read_the_data", "dataset"), ("spot_outliers", "dataset"), ("spot_outliers", "run")]
)
def test_a_notebook_runs(name, kind, tmp_path):
    root = tmp_path / "out" / "demo"  # as the notebook says
    root.parent.mkdir()
    episodes = change(make_task(34), [3], lambda e: freeze(e, 30, 85))
    write_run(root, episodes) if kind == "run" else write_dataset(root, episodes)
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.stem == name), as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) == FIGURES[name]
    told = "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
    expected = "t-SNE, perplexity 11, seed 0 trustworthiness 0." if name == "read_the_data" else "00003"
    assert expected in told
