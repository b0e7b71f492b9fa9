"""The map of the report: what is drawn by the script in the page."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from qc.drawing import COLOURS
from qc.embedding import Embedding
from qc.maps import Map, nothing_to_map, pca_map, tsne_map
from qc.report.tables import note
from qc.table import KEEP

_WHY = 300


def map_data(table: pd.DataFrame, embedding: Embedding, order: Sequence[str]) -> dict[str, Any]:
    """Successes that can be compared with others of their task, their places on the maps, and colours.

    Without ``planes`` there is nothing to map, and ``why`` says so.
    """
    number = {id_: n for n, id_ in enumerate(table["episode_id"])}
    rows = table.loc[[number[i] for i in embedding.ids]]
    z = embedding.standardise(embedding.tasks, (rows["verdict"] == KEEP).to_numpy(dtype=bool))
    drawn = np.isfinite(z).all(axis=1) & z.any(axis=1) & (rows["outcome"] == "success").to_numpy(dtype=bool)
    why = nothing_to_map(z[drawn])
    episodes = [
        {
            "n": number[row["episode_id"]],
            "id": row["episode_id"],
            "why": row["explanation"][:_WHY] if row["reasons"] else "",
            **{name: row[name] for name in ("task", "verdict", "reasons")},
        }
        for _, row in rows[drawn].iterrows()
    ]
    shades = [to_hex(colour) for colour in mpl.colormaps["tab20"].colors]  # type: ignore[attr-defined]
    mapped = {e["task"] for e in episodes}
    colours = {task: shades[(2 * i + i // 10) % 20] for i, task in enumerate(task for task in order if task in mapped)}
    return {
        "episodes": [] if why else episodes,
        "planes": [] if why else [_plane(m(z[drawn], embedding.groups)) for m in (pca_map, tsne_map)],
        "why": why,
        "left": len(table) - len(episodes),
        "colours": {"verdict": {v: c for v, c in COLOURS.items() if v in set(table["verdict"])}, "task": colours},
    }


def map_section(data: Mapping[str, Any]) -> str:
    """Where the script draws, or a sentence if there is nothing to draw."""
    told = f"{data['left']} left out: failed, not readable, or without another kept one of their task to compare with."
    left = told if data["left"] else ""
    if data["why"]:
        return note(f"{data['why'].capitalize()}. {left}")
    legends = "".join(_legend(by, colours) for by, colours in data["colours"].items())
    return (
        '<div class="controls"><button data-plane="0">principal components</button>'
        '<button data-plane="1">t-SNE</button><button data-by="verdict">colour: verdict</button>'
        '<button data-by="task">colour: task</button></div>'
        f'<svg id="map" viewBox="0 0 1000 520"></svg><p class="note" id="maptitle"></p>{legends}'
        + note(
            "Point at an episode to see what it is; click a flagged one to go to its card. Each task is set in its own "
            "scale. On t-SNE only neighbourhoods mean something. A dark ring on the edge: it lies farther out. "
            + left
            * bool(data["left"])
        )
    )


def _legend(by: str, colours: Mapping[str, str]) -> str:
    named = {name.replace("_", " ") if by == "verdict" else name: colour for name, colour in colours.items()}
    entries = (f'<span><i style="background:{c}"></i>{html.escape(name)}</span>' for name, c in named.items())
    return f'<p class="legend" data-by="{by}">{"".join(entries)}</p>'


def _plane(plane: Map) -> dict[str, Any]:
    points, far = plane.framed()
    return {"title": plane.caption, "points": np.round(points, 4).tolist(), "far": far.tolist()}
