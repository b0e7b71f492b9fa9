"""Flagged episodes, each on a card beside the nearest one that is kept."""

import html

import numpy as np
import pandas as pd

from qc.drawing import COLOURS, FLAGGED
from qc.embedding import Embedding
from qc.episodes import Episode, EpisodeSet
from qc.errors import QcError
from qc.report.images import image
from qc.report.tables import folded, note
from qc.report.thumbnails import video_figure
from qc.table import KEEP, OUTCOME
from qc.trajectories import path_figure

_CARDS = 40
_DPI = 110

_LEGEND = (
    "Orange: the episode; grey: the nearest kept one of its task. Ring: start; dots: the gripper is told to close or "
    "to open; purple: the row or rows that the explanation names, which are drawn enlarged where something leaps."
)
_READING = (
    "<code>state_arm.joint_6@0.94</code> is the measured joint 6 at 94 % of the episode's time, "
    "<code>action_arm</code> the commanded joints, <code>eef_position</code> the tool, <code>eef_rotation.xx</code> an "
    "entry of its rotation matrix, <code>eef_stray</code> how far it strays from a straight way. "
    "Before that, phases are set at the times at which they usually begin. "
    "<b>Deviations</b> are distances from the task's median, in units of the usual spread (1.48 times the median "
    "absolute deviation): about 3 is common, a filter flags what is beyond its cutoff. "
    "<b>Its range</b> is that of the dimension over the task's normal episodes, without the outermost half per cent: "
    "100 % and more is out of all proportion."
)


def cards(table: pd.DataFrame, found: EpisodeSet, embedding: Embedding) -> str:
    """Cards of what is dropped or for review; attempts that failed come last."""
    flagged = table[table["verdict"].isin(FLAGGED)]
    if not len(flagged):
        return note("None.")
    failed = flagged["reasons"].map(lambda reasons: reasons[0] == OUTCOME).astype(bool)
    shown = pd.concat([flagged[~failed], flagged[failed]]).iloc[:_CARDS]
    by_id = {e.id: e for e in found.episodes}
    peers = _peers(table, embedding)
    drawn = [
        _card(number, row, by_id[row["episode_id"]], by_id.get(peers.get(row["episode_id"], "")), found)
        for number, row in shown.iterrows()
    ]
    more = note(f"{len(flagged) - _CARDS} more in verdicts.parquet.") if len(flagged) > _CARDS else ""
    reading = folded("How to read the explanations", f'<p class="note">{_READING}</p>')
    return f'{note(_LEGEND)}{reading}<div class="cards">{"".join(drawn)}</div>{more}'


def _card(number: object, row: pd.Series, episode: Episode, peer: Episode | None, found: EpisodeSet) -> str:
    told = [
        ", ".join(row["reasons"]).replace("_", " "),
        f"{row['decided_by']} decided: {row['decided_why']}" if row["decided_by"] else "",
        row["explanation"],
    ]
    lines = "".join(f"<div>{html.escape(line)}</div>" for line in told if line)
    beside = f'<div class="note">grey: {html.escape(peer.id)}, the nearest that is kept</div>' if peer else ""
    verdict = "failed" if row["reasons"][0] == OUTCOME else row["verdict"]
    tag = f'<span class="tag" style="background:{COLOURS[row["verdict"]]}">{verdict}</span>'
    shown = _pictures(f"thumb-{number}", row, episode, peer, found) + beside if episode.sound else ""
    return (
        f'<div class="card" id="card-{number}">{tag}<b>{html.escape(episode.id)}</b>'
        f'<div class="note">{html.escape(episode.task)}</div>{lines}{shown}'
        f"<code>{html.escape(episode.content_hash[:16])}</code></div>"
    )


def _pictures(id_: str, row: pd.Series, episode: Episode, peer: Episode | None, found: EpisodeSet) -> str:
    drawn = image(path_figure(episode, peer, row["explanation"]), _DPI, "thumb", episode.id, id_)
    try:
        video = video_figure(episode, peer, found)
    except QcError as error:
        return note(f"No picture from the video: {error}") + drawn
    return (image(video, _DPI, "thumb", f"pictures from the video of {episode.id}") if video else "") + drawn


def _peers(table: pd.DataFrame, embedding: Embedding) -> dict[str, str]:
    """Nearest kept episode of the same task, by flagged episode."""
    verdict = dict(zip(table["episode_id"], table["verdict"], strict=True))
    kept = np.array([verdict[i] == KEEP for i in embedding.ids], dtype=bool)
    z = embedding.standardise(embedding.tasks, kept)
    found = {}
    for i, id_ in enumerate(embedding.ids):
        if verdict[id_] in FLAGGED:
            others = np.flatnonzero(kept & (embedding.tasks == embedding.tasks[i]))
            if len(others):
                found[id_] = embedding.ids[others[np.square(z[others] - z[i]).sum(axis=1).argmin()]]
    return found
