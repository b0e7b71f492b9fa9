"""The notebooks run from top to bottom on a small dataset, and hold no output of another."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.qc.datasets import write_dataset
from tests.qc.factories import change, freeze, make_task, write_run

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["read_the_data", "spot_outliers"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_short_and_without_output(path):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["cells"][0]["cell_type"]) == (4, "markdown")
    assert len(notebook["cells"]) <= 20
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize(
    ("name", "kind"), [("read_the_data", "dataset"), ("spot_outliers", "dataset"), ("spot_outliers", "run")]
)
def test_a_notebook_runs(name, kind, tmp_path, capsys):
    path = next(path for path in NOTEBOOKS if path.stem == name)
    episodes = change(make_task(34), [3], lambda e: freeze(e, 30, 85))
    root = tmp_path / "data"
    write_run(root, episodes) if kind == "run" else write_dataset(root, episodes)
    space: dict[str, object] = {}
    figures = 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"]).replace("out/demo", str(root))
            *_, last = code.splitlines()
            exec(compile(code, path.name, "exec"), space)  # noqa: S102 - our own notebook
            if "_figure(" in last:
                assert isinstance(eval(last, space), Figure)  # noqa: S307
                figures += 1
    assert figures >= 2
    if path.stem == "read_the_data":
        assert "t-SNE, perplexity 11, seed 0 trustworthiness 0." in capsys.readouterr().out
