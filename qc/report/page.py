"""Puts the report together."""

import base64
import html
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from qc.embedding import Embedding
from qc.episodes import EpisodeSet
from qc.errors import QcError
from qc.figures import distance_figure, length_figure, overlay_figure
from qc.filters.phases import phase_balance
from qc.maps import Map, pca_map, tsne_map
from qc.plots import COLOURS, natural
from qc.rates import rates
from qc.report.thumbnails import thumbnail
from qc.table import DROP, KEEP, MEASURED, REVIEW

_CARDS = 40
_TASKS = 16
_DPI = 110
_LISTED = 50


def write_report(
    path: Path | str,
    title: str,
    table: pd.DataFrame,
    found: EpisodeSet,
    embedding: Embedding,
    counted: Mapping[str, Any],
) -> None:
    """Write the report as one HTML page with everything in it.

    Args:
        title: what was judged.
        table: verdicts.
        embedding: of the sound episodes of ``found``, in order.
        counted: accounts, as in :meth:`qc.folder.Folder.save`.

    Raises:
        QcError: if it cannot be written.
    """
    page = Template(files("qc.report").joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        summary=_summary(table, counted),
        body=_body(table, found, embedding, counted),
        data=json.dumps(_data(table, embedding), allow_nan=False).replace("<", "\\u003c"),
    )
    path = Path(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text(page, encoding="utf-8")
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
    finally:
        staging.unlink(missing_ok=True)


def _summary(table: pd.DataFrame, counted: Mapping[str, Any]) -> str:
    counts = table["verdict"].value_counts()
    parts = [f"{n} {verdict.replace('_', ' ')}" for verdict in COLOURS if (n := int(counts.get(verdict, 0)))]
    lost = f", {len(counted['damaged'])} damaged" if counted["damaged"] else ""
    return f"{len(table)} episodes of {table['task'].nunique()} tasks: {', '.join(parts)}{lost}."


def _body(table: pd.DataFrame, found: EpisodeSet, embedding: Embedding, counted: Mapping[str, Any]) -> str:
    legend = "".join(f'<span><i style="background:{c}"></i>{v.replace("_", " ")}</span>' for v, c in COLOURS.items())
    judged = sorted(set(table["task"]), key=natural)
    parts = [
        _section("Accounts", _accounts(counted["tasks"])),
        _section(
            "Map",
            '<div class="controls"><button>principal components</button><button>t-SNE</button></div>'
            '<svg id="map" viewBox="0 0 1000 520"></svg><p class="note" id="maptitle"></p>'
            f'<p class="legend">{legend}</p>'
            '<p class="note">Each task is set in its own scale. On t-SNE only neighbourhoods mean something.</p>',
        ),
        _section("Flagged episodes", _cards(table, found, embedding)),
        _section("Worst of each filter", _worst(table)),
        _section("Lengths, kept beside flagged", _image(length_figure(table))),
        _section("Mahalanobis distances", _image(distance_figure(table))),
        _section("Trajectories", "".join(_image(overlay_figure(found.episodes, table, t)) for t in judged[:_TASKS])),
        _section("Phases", _frame(phase_balance(e for e in found.episodes if e.succeeded))),
        _section("Rates by env", _frame(rates(table))),
        _section("Files and rows", _findings(counted)),
    ]
    return "\n".join(parts)


def _section(heading: str, content: str) -> str:
    return f"<h2>{heading}</h2>\n{content}"


def _accounts(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for task, account in tasks.items():
        cells = [value if isinstance(value, int) else ", ".join(f"{k} {n}" for k, n in value.items()) or 0
                 for value in account.values()]  # fmt: skip
        rows.append((task, *cells))
    names = [name.replace("_", " ") for name in next(iter(tasks.values()))] if tasks else []
    return _table(("task", *names), rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(
            f'<td class="n">{v}</td>' if isinstance(v, int | float) else f"<td>{html.escape(str(v))}</td>" for v in row
        ) + "</tr>"
        for row in rows
    )  # fmt: skip
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _frame(frame: pd.DataFrame) -> str:
    if not len(frame):
        return '<p class="note">Not recorded.</p>'
    rows = [[round(v, 3) if isinstance(v, float) else "yes" if v is True else "" if v is False else v for v in row]
            for row in frame.itertuples(index=False)]  # fmt: skip
    return _table(list(frame.columns), rows)


def _cards(table: pd.DataFrame, found: EpisodeSet, embedding: Embedding) -> str:
    flagged = table[table["verdict"].isin((DROP, REVIEW))]
    if not len(flagged):
        return '<p class="note">None.</p>'
    by_id = {e.id: e for e in found.episodes}
    peers = _peers(table, embedding)
    cards = []
    for n, row in flagged.head(_CARDS).iterrows():
        id_, peer = row["episode_id"], peers.get(row["episode_id"], "")
        picture = thumbnail(by_id[id_], by_id.get(peer), found.videos) if by_id[id_].sound else ""
        image = (
            f'<img id="thumb-{n}" src="data:image/png;base64,{picture}" alt="{html.escape(id_)}">' if picture else ""
        )
        beside = f'<div class="note">grey: {html.escape(peer)}, the nearest that is kept</div>' if peer else ""
        colour = COLOURS[row["verdict"]]
        cards.append(
            f'<div class="card" id="card-{n}"><span class="tag" style="background:{colour}">{row["verdict"]}</span>'
            f"<b>{html.escape(id_)}</b><div>{html.escape(', '.join(row['reasons']))}</div>"
            f"<div>{html.escape(row['explanation'])}</div>{image}{beside}<code>{row['content_hash'][:16]}</code></div>"
        )
    more = f'<p class="note">{len(flagged) - _CARDS} more in verdicts.parquet.</p>' if len(flagged) > _CARDS else ""
    return f'<div class="cards">{"".join(cards)}</div>{more}'


def _peers(table: pd.DataFrame, embedding: Embedding) -> dict[str, str]:
    """Nearest kept episode of the same task, by flagged episode."""
    verdict = dict(zip(table["episode_id"], table["verdict"], strict=True))
    kept = np.array([verdict[i] == KEEP for i in embedding.ids], dtype=bool)
    z = embedding.standardise(embedding.tasks, kept)
    found = {}
    for i, id_ in enumerate(embedding.ids):
        if verdict[id_] in (DROP, REVIEW):
            others = np.flatnonzero(kept & (embedding.tasks == embedding.tasks[i]))
            if len(others):
                found[id_] = embedding.ids[others[np.square(z[others] - z[i]).sum(axis=1).argmin()]]
    return found


def _worst(table: pd.DataFrame, shown: int = 5) -> str:
    rows = []
    for name in MEASURED:
        scores = table[f"{name}_score"]
        for i in scores[scores < 0].nsmallest(shown).index:
            row = table.loc[i]
            cells = (name.replace("_", " "), row["episode_id"], round(float(row[f"{name}_score"]), 2),
                     round(float(row[f"{name}_cutoff"]), 2), row["verdict"])  # fmt: skip
            rows.append(cells)
    return _table(("filter", "episode", "score", "cutoff", "verdict"), rows)


def _findings(counted: Mapping[str, Any]) -> str:
    damaged = [(d["id"], "", "", d["why"]) for d in counted["damaged"]]
    found = [
        (f["episode"], f["file"], "" if f["frame"] is None else f["frame"], f["told"]) for f in counted["findings"]
    ]
    rows = [*damaged, *found]
    if not rows:
        return '<p class="note">Nothing is wrong with them.</p>'
    more = f'<p class="note">{len(rows) - _LISTED} more in accounting.json.</p>' if len(rows) > _LISTED else ""
    return _table(("episode", "file", "frame", "what"), rows[:_LISTED]) + more


def _image(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return f'<img class="figure" alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _data(table: pd.DataFrame, embedding: Embedding) -> dict[str, Any]:
    """What the map shows: episodes with their verdicts, and their places."""
    number = {id_: n for n, id_ in enumerate(table["episode_id"])}
    outcome = dict(zip(table["episode_id"], table["outcome"], strict=True))
    kept = np.array([table.loc[number[i], "verdict"] == KEEP for i in embedding.ids], dtype=bool)
    z = embedding.standardise(embedding.tasks, kept)
    drawn = np.isfinite(z).all(axis=1) & np.array([outcome[i] == "success" for i in embedding.ids], bool)
    episodes = []
    for i in np.flatnonzero(drawn):
        row = table.loc[number[embedding.ids[i]]]
        shown = {name: row[name] for name in ("task", "verdict", "reasons")}
        why = row["explanation"][:300] if row["reasons"] else ""
        episodes.append({"n": number[embedding.ids[i]], "id": embedding.ids[i], "why": why, **shown})
    planes = [m(z[drawn], embedding.groups) for m in (pca_map, tsne_map)] if drawn.sum() > 3 else []
    return {"episodes": episodes, "planes": [_plane(m) for m in planes], "colours": dict(COLOURS)}


def _plane(plane: Map) -> dict[str, Any]:
    trust = "" if np.isnan(plane.trustworthiness) else f"; trustworthiness {plane.trustworthiness:.2f}"
    far = np.percentile(np.abs(plane.points - np.median(plane.points, axis=0)), 99.5, axis=0) * 3 + 1e-9
    centre = np.median(plane.points, axis=0)
    points = np.clip(plane.points, centre - far, centre + far)
    return {"title": plane.title + trust, "points": np.round(points, 4).tolist()}
