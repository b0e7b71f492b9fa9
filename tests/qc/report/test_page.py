"""The report, opened in a real browser where there is one."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

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


def test_a_few_episodes_and_none_give_a_page_too(tmp_path):
    for n in (0, 1, 3):
        episodes = make_task(n)
        found, embedding = EpisodeSet(tuple(episodes)), embed(episodes)
        table = assess(found, embedding=embedding)
        folder = Folder(tmp_path / str(n))
        write_report(folder.report, "few", table, found, embedding, folder.save(table, found, {}))
        assert f"{n} episodes of" in folder.report.read_text()


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    episodes = make_task(2)
    found, embedding = EpisodeSet(tuple(episodes)), embed(episodes)
    table = assess(found, embedding=embedding)
    counted = Folder(tmp_path).save(table, found, {})
    with pytest.raises(QcError, match="cannot be written"):
        write_report(tmp_path / "missing" / "r.html", "few", table, found, embedding, counted)
