"""The report, opened in a real browser where there is one."""

import json
import math
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from pipeline.video import encode
from qc.decisions import Decision
from qc.embedding import embed
from qc.episodes import EpisodeSet, Finding
from qc.errors import QcError
from qc.folder import Folder
from qc.report.page import write_report
from qc.verdicts import assess
from tests.qc.factories import TASK, change, freeze, make_episode, make_task, truncate

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""

PROBE = """<script>
const errors = []; addEventListener("error", e => errors.push(String(e.message)));
addEventListener("load", () => {
  const circles = document.querySelectorAll("#map circle"), tip = document.getElementById("tip");
  const flagged = [...circles].find(c => c.getAttribute("r") > 5), before = flagged.getAttribute("cx");
  flagged.dispatchEvent(new MouseEvent("mousemove", {clientX: 10, clientY: 10, bubbles: true}));
  const broken = [...document.images].filter(i => !(i.complete && i.naturalWidth > 0)).length;
  const seen = {circles: circles.length, tip: tip.textContent, shown: tip.style.display,
    tipPicture: !!tip.querySelector("img"), broken: broken, images: document.images.length};
  document.querySelectorAll(".controls button")[1].click();
  seen.title = document.getElementById("maptitle").textContent;
  seen.errors = errors;
  document.title = JSON.stringify(seen);
});
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    episodes = [
        *change(change(make_task(40), [4], lambda e: truncate(e, 0.5)), [9], lambda e: freeze(e, 30, 85)),
        *make_task(6, task="<script>alert(1)</script>"),
        make_episode(70, outcome="failure", reason="insert: jammed"),
    ]
    found = EpisodeSet(tuple(episodes), findings=(Finding("fps", "fps is 15 & <wrong>"),))
    embedding = embed(episodes)
    table = assess(found, embedding=embedding)
    folder = Folder(root)
    write_report(folder.report, "some <run>", table, found, embedding, folder.save(table, found, {}))
    return folder.report


def test_the_page_is_whole_and_escapes_what_it_is_given(page):
    text = page.read_text()
    assert "http://www.w3.org/2000/svg" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert "<script>alert(1)" not in text
    assert "some &lt;run&gt;" in text
    assert "fps is 15 &amp; &lt;wrong&gt;" in text
    assert "insert: jammed 1" in text
    data = json.loads(re.findall(r'<script id="data" type="application/json">(.*?)</script>', text)[0])
    assert len(data["episodes"]) == 46
    assert [len(plane["points"]) for plane in data["planes"]] == [46, 46]


@pytest.mark.skipif(not BROWSER, reason="no Chromium here; `apt-get install chromium` brings one")
def test_a_browser_shows_it_without_an_error(page, tmp_path):
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text().replace("</head>", PROBE + "</head>", 1))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command += ["--virtual-time-budget=5000", "--dump-dom", f"file://{probed}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    seen = json.loads(unescape(re.findall(r"<title>(.*?)</title>", done.stdout)[0]))
    assert seen["errors"] == []
    assert seen["circles"] == 46
    assert seen["shown"] == "block"
    assert re.match(f"{TASK}-s7-.*: drop, ", seen["tip"])
    assert seen["tipPicture"]
    assert (seen["broken"], seen["images"] >= 6) == (0, True)
    assert seen["title"].startswith("t-SNE, perplexity 15, seed 0")


def report(root, episodes, order=(), decisions=None, **about):
    """The page on some episodes, as text."""
    found = EpisodeSet(tuple(episodes), **about)
    embedding = embed(episodes)
    table = assess(found, embedding=embedding, decisions=decisions)
    folder = Folder(root)
    write_report(folder.report, "few", table, found, embedding, folder.save(table, found, decisions or {}, order))
    return folder.report.read_text()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_few_episodes_and_none_give_a_page_without_empty_figures(n, tmp_path):
    text = report(tmp_path, make_task(n))
    assert f"{n} episode" in text
    assert "Nothing to map: " in text
    assert '<svg id="map"' not in text
    assert "<button" not in text
    assert "No filter found anything to rank" in text
    assert "Not assessed: no task has enough episodes." in text
    assert ("No episode succeeded." in text) == (n == 0)


def test_tasks_of_one_episode_each_have_nothing_to_map(tmp_path):
    text = report(tmp_path, [make_episode(0, task=f"task {i}") for i in range(4)])
    assert "Nothing to map" in text
    assert "4 episodes of 4 tasks: 4 kept." in text


def test_the_summary_says_what_the_accounts_say_and_tasks_keep_their_order(tmp_path):
    tasks = ("peg_square_8mm", "gear_small")
    episodes = [e for task in tasks for e in make_task(10, task=task)]
    episodes = change(episodes, [3], lambda e: freeze(e, 30, 85))
    failed = make_episode(70, task="gear_small", outcome="failure", reason="insert: jammed")
    text = report(tmp_path, [*episodes, failed], tasks)
    assert "21 episodes of 2 tasks: 19 kept, 1 dropped, 1 failed." in text
    for section in ("Accounts", "Diversity of the successes", "Trajectories", "All phases of 2 tasks"):
        places = [text.index(task, text.index(section)) for task in tasks]
        assert places == sorted(places)
    assert text.index(failed.id, text.index("Flagged episodes")) > text.index(episodes[3].id)


def test_a_decision_says_who_and_why(tmp_path):
    episodes = make_task(12)
    chosen = episodes[2].content_hash
    text = report(tmp_path, episodes, decisions={chosen: Decision(chosen, "drop", "Ada", "scrapes the <rim>")})
    assert "Ada decided: scrapes the &lt;rim&gt;" in text
    assert "Decisions of people" in text


def test_an_unreadable_video_costs_its_picture_only(tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"nothing")
    episodes = change(make_task(12), [3], lambda e: freeze(e, 30, 85))
    videos = {"front": {e.id: (str(broken), 0.0, math.inf) for e in episodes}}
    text = report(tmp_path, episodes, videos=videos)
    assert "No picture from the video: broken.mp4: not readable as a video" in text
    assert text.count('id="thumb-') == 1


def test_a_readable_video_is_shown_above_the_path(tmp_path):
    episodes = change(make_task(12), [3], lambda e: freeze(e, 30, 85))
    film = tmp_path / "film.mp4"
    encode(film, [np.full((72, 128, 3), shade, np.uint8) for shade in range(0, 200, 2)], 15)
    text = report(tmp_path, episodes, videos={"front": {e.id: (str(film), 0.0, math.inf) for e in episodes}})
    assert text.index(f"pictures from the video of {episodes[3].id}") < text.index('id="thumb-')


def test_phases_are_rare_for_a_reason_and_the_rest_is_folded(page):
    text = page.read_text()
    phases = text[text.index("<h2>Phases") : text.index("<h2>Rates")]
    shown, folded = phases.split("<details>")
    assert "No phase is rare in any task." in shown
    assert "all tasks" in folded
    assert "retreat" in folded


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    episodes = make_task(2)
    found, embedding = EpisodeSet(tuple(episodes)), embed(episodes)
    table = assess(found, embedding=embedding)
    counted = Folder(tmp_path).save(table, found, {})
    with pytest.raises(QcError, match="cannot be written"):
        write_report(tmp_path / "missing" / "r.html", "few", table, found, embedding, counted)
