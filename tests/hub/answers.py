"""What the Hub answers to each kind of request."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from tests.hub.faults import Faults
from tests.hub.repositories import LFS_BYTES, LFS_SUFFIXES, Entry, Repositories, Repository

PAGE = 50
"""Entries of a folder listing that are told at a time."""

_NAME = r"(?P<name>[\w.-]+/[\w.-]+)"
_KIND = r"(?P<kind>models|datasets|spaces)"


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    authorization: str

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """Status, content and headers."""

    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: object, headers: Mapping[str, str] | None = None) -> "Answer":
        return cls(200, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    @classmethod
    def error(cls, status: int, code: str, message: str) -> "Answer":
        headers = {"X-Error-Message": message, "Content-Type": "application/json"}
        content = json.dumps({"error": message}).encode()
        return cls(status, content, headers | ({"X-Error-Code": code} if code else {}))


class Answers:
    """Answers requests from the repositories, with the faults in force."""

    def __init__(self, url: str, token: str, faults: Faults, repositories: Repositories) -> None:
        self._url, self._token, self._faults, self._repositories = url, token, faults, repositories

    def answer(self, asked: Asked) -> Answer:
        """The answer to any request but an upload."""
        if asked.authorization and asked.authorization != f"Bearer {self._token}":
            return Answer.error(401, "", "Invalid credentials in Authorization header")
        for pattern, methods, give in _ROUTES:
            if (found := re.fullmatch(pattern, asked.path)) and asked.method in methods:
                return give(self, asked, **found.groupdict())
        return Answer.error(404, "", f"no route for {asked.method} {asked.path}")

    def whoami(self, asked: Asked) -> Answer:
        if not asked.authorization:
            return Answer.error(401, "", "Invalid credentials in Authorization header")
        return Answer.of({"type": "user", "name": "tester", "orgs": []})

    def create(self, asked: Asked) -> Answer:
        if not asked.authorization:
            return Answer.error(401, "", "Invalid credentials in Authorization header")
        wish = asked.json()
        kind, name = f"{wish.get('type', 'model')}s", f"{wish['organization'] or 'tester'}/{wish['name']}"
        made = {"url": f"{self._url}/{'' if kind == 'models' else f'{kind}/'}{name}", "name": name}
        if not self._repositories.create(kind, name, private=wish.get("visibility") == "private"):
            known = Answer.error(409, "", "You already created this repo")
            return Answer(409, json.dumps({"error": "You already created this repo", **made}).encode(), known.headers)
        return Answer.of(made)

    def validate(self, asked: Asked) -> Answer:
        front = re.match(r"---\n(.*?)\n---\n", asked.json()["content"], re.DOTALL)
        return Answer.of({"errors": [], "warnings": [] if front else [{"message": "empty or missing yaml metadata"}]})

    def about(self, asked: Asked, kind: str, name: str, revision: str = "main") -> Answer:
        found = self._find(asked, kind, name, revision)
        if isinstance(found, Answer):
            return found
        repo, commit = found
        files = [{"rfilename": path} for path in repo.files(commit)]
        return Answer.of({"id": name, "sha": commit, "private": repo.private, "tags": [], "siblings": files})

    def preupload(self, asked: Asked, kind: str, name: str, revision: str) -> Answer:
        found = self._find(asked, kind, name, revision, write=True)
        if isinstance(found, Answer):
            return found
        there, told = found[0].files(found[1]), []
        for file in asked.json()["files"]:
            lfs = file["path"].endswith(LFS_SUFFIXES) or file["size"] > LFS_BYTES
            known = there.get(file["path"], {})
            oid = known.get("sha256") if lfs else known.get("oid")
            mode = "lfs" if lfs else "regular"
            told.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return Answer.of({"files": told})

    def batch(self, asked: Asked, kind: str, name: str) -> Answer:
        found = self._find(asked, kind, name, "main", write=True)
        if isinstance(found, Answer):
            return found
        objects = []
        for wish in asked.json()["objects"]:
            entry = {"oid": wish["oid"], "size": wish["size"]}
            if not self._repositories.object(wish["oid"]).is_file():
                verify = {"href": f"{self._url}/{kind}/{name}.git/info/lfs/objects/verify"}
                entry["actions"] = {"upload": {"href": f"{self._url}/upload/{wish['oid']}"}, "verify": verify}
            objects.append(entry)
        return Answer.of({"transfer": "basic", "objects": objects})

    def verify(self, asked: Asked, kind: str, name: str) -> Answer:
        stored = self._repositories.object(asked.json()["oid"])
        if not stored.is_file() or stored.stat().st_size != asked.json()["size"]:
            return Answer.error(404, "", "the object is not there")
        return Answer.of({})

    def commit(self, asked: Asked, kind: str, name: str, revision: str) -> Answer:
        found = self._find(asked, kind, name, revision, write=True)
        if isinstance(found, Answer):
            return found
        header: dict[str, Any] = {}
        added: dict[str, Entry] = {}
        deleted: list[str] = []
        for line in map(json.loads, asked.body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                header = value
            elif line["key"] == "file":
                added[value["path"]] = self._repositories.put_blob(base64.b64decode(value["content"]))
            elif line["key"] == "lfsFile":
                if not self._repositories.object(value["oid"]).is_file():
                    return Answer.error(400, "", f"the object of {value['path']} was never uploaded")
                added[value["path"]] = self._repositories.point_to(value["oid"], value["size"])
            elif line["key"] == "deletedFile":
                if value["path"] not in found[0].files(found[1]):
                    return Answer.error(404, "EntryNotFound", "A file with this name doesn't exist")
                deleted += [] if self._faults.keep_deleted else [value["path"]]
        parent = header.get("parentCommit")
        commit = self._repositories.commit(kind, name, added, deleted, header["summary"], parent)
        if commit is None:
            return Answer.error(412, "", "A commit has happened since. Please refresh and try again.")
        url = f"{self._url}/{kind}/{name}/commit/{commit}"
        return Answer.of({"success": True, "commitOid": commit, "commitUrl": url, "hookOutput": ""})

    def refs(self, asked: Asked, kind: str, name: str) -> Answer:
        found = self._find(asked, kind, name, "main")
        if isinstance(found, Answer):
            return found
        tags = [
            {"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": commit} for tag, commit in found[0].tags.items()
        ]
        branch = {"name": "main", "ref": "refs/heads/main", "targetCommit": found[0].head}
        return Answer.of({"branches": [branch], "converts": [], "tags": tags})

    def tag(self, asked: Asked, kind: str, name: str, revision: str) -> Answer:
        found = self._find(asked, kind, name, revision, write=True)
        if isinstance(found, Answer):
            return found
        with self._repositories.changing(kind, name) as repo:
            if asked.method == "DELETE":
                repo.tags.pop(revision)
                return Answer.of({})
            if asked.json()["tag"] in repo.tags:
                return Answer.error(409, "", "Tag reference exists already")
            repo.tags[asked.json()["tag"]] = repo.parent(found[1]) if self._faults.move_tags else found[1]
        return Answer.of({})

    def tree(self, asked: Asked, kind: str, name: str, revision: str, folder: str = "") -> Answer:
        """A folder's listing, in pages of :data:`PAGE`."""
        found = self._find(asked, kind, name, revision)
        if isinstance(found, Answer):
            return found
        files = {path: entry for path, entry in found[0].files(found[1]).items() if path.startswith(folder)}
        if folder and not files:
            return Answer.error(404, "EntryNotFound", f"{folder} does not exist")
        listed = [_described(path, entry) for path, entry in sorted(files.items())]
        if asked.query.get("recursive", "").lower() not in ("true", "1"):
            listed = _top(listed, folder)
        first = int(asked.query.get("cursor", 0))
        headers = {}
        if first + PAGE < len(listed):
            query = urlencode({**asked.query, "cursor": first + PAGE})
            headers["Link"] = f'<{self._url}{asked.path}?{query}>; rel="next"'
        return Answer.of(listed[first : first + PAGE], headers)

    def paths(self, asked: Asked, kind: str, name: str, revision: str) -> Answer:
        found = self._find(asked, kind, name, revision)
        if isinstance(found, Answer):
            return found
        files = found[0].files(found[1])
        wanted = parse_qs(asked.body.decode()).get("paths", [])
        return Answer.of([_described(path, files[path]) for path in wanted if path in files])

    def file(self, asked: Asked, kind: str, name: str, revision: str, path: str) -> Answer:
        """A file; one that lies in LFS is elsewhere, with a signed address that needs no token."""
        found = self._find(asked, kind, name, revision)
        if isinstance(found, Answer):
            return found
        repo, commit = found
        entry = repo.files(commit).get(path)
        head = {"X-Repo-Commit": commit}
        if entry is None:
            missing = Answer.error(404, "EntryNotFound", f"{path} does not exist")
            return Answer(404, missing.content, {**missing.headers, **head})
        if self._faults.stale and path.endswith(self._faults.stale):
            entry = repo.first(path)
        if "sha256" not in entry:
            content = self._wrong(path, self._repositories.object(entry["oid"]).read_bytes())
            return Answer(200, content, {**head, "ETag": f'"{entry["oid"]}"'})
        linked = {"X-Linked-ETag": f'"{entry["sha256"]}"', "X-Linked-Size": str(entry["size"])}
        # Another host, as on the real Hub: the client then asks it without the token.
        elsewhere = self._url.replace("127.0.0.1", "localhost")
        where = f"{elsewhere}/storage/{entry['sha256']}?{urlencode({'path': path})}"
        return Answer(302, b"", {**head, **linked, "Location": where})

    def stored(self, asked: Asked, oid: str) -> Answer:
        content = self._repositories.object(oid).read_bytes()
        return Answer(200, self._wrong(asked.query["path"], content), {"ETag": f'"{oid}"'})

    def _wrong(self, path: str, content: bytes) -> bytes:
        if self._faults.flip and path.endswith(self._faults.flip):
            return bytes([content[0] ^ 1]) + content[1:]
        if self._faults.truncate and path.endswith(self._faults.truncate):
            return content[: len(content) // 2]
        return content

    def _find(
        self, asked: Asked, kind: str, name: str, revision: str, *, write: bool = False
    ) -> tuple[Repository, str] | Answer:
        repo = self._repositories.find(kind, name)
        if repo is None or ((repo.private or write) and not asked.authorization):
            return Answer.error(404 if asked.authorization else 401, "RepoNotFound", "Repository not found")
        commit = repo.resolve(revision)
        if commit is None:
            return Answer.error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repo, commit


def _described(path: str, entry: Entry) -> dict[str, Any]:
    told = {"type": "file", "oid": entry["oid"], "size": entry["size"], "path": path}
    if "sha256" in entry:
        told["lfs"] = {"oid": entry["sha256"], "size": entry["size"], "pointerSize": 132}
    return told


def _top(listed: list[dict[str, Any]], folder: str) -> list[dict[str, Any]]:
    """Files of a folder itself, and its folders."""
    start = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for entry in listed:
        head, below, _ = entry["path"].removeprefix(start).partition("/")
        told = {"type": "directory", "oid": "0" * 40, "size": 0, "path": f"{start}{head}"}
        entries.setdefault(head, told if below else entry)
    return list(entries.values())


_REPO = rf"/api/{_KIND}/{_NAME}"
_ROUTES = (
    (r"/api/whoami-v2", ("GET",), Answers.whoami),
    (r"/api/repos/create", ("POST",), Answers.create),
    (r"/api/validate-yaml", ("POST",), Answers.validate),
    (rf"{_REPO}", ("GET",), Answers.about),
    (rf"{_REPO}/revision/(?P<revision>.+)", ("GET",), Answers.about),
    (rf"{_REPO}/preupload/(?P<revision>.+)", ("POST",), Answers.preupload),
    (rf"{_REPO}/commit/(?P<revision>.+)", ("POST",), Answers.commit),
    (rf"{_REPO}/refs", ("GET",), Answers.refs),
    (rf"{_REPO}/tag/(?P<revision>.+)", ("POST", "DELETE"), Answers.tag),
    (rf"{_REPO}/tree/(?P<revision>[^/]+)", ("GET",), Answers.tree),
    (rf"{_REPO}/tree/(?P<revision>[^/]+)/(?P<folder>.+)", ("GET",), Answers.tree),
    (rf"{_REPO}/paths-info/(?P<revision>.+)", ("POST",), Answers.paths),
    (rf"/{_KIND}/{_NAME}\.git/info/lfs/objects/batch", ("POST",), Answers.batch),
    (rf"/{_KIND}/{_NAME}\.git/info/lfs/objects/verify", ("POST",), Answers.verify),
    (rf"/{_KIND}/{_NAME}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", ("GET", "HEAD"), Answers.file),
    (r"/storage/(?P<oid>[0-9a-f]+)", ("GET", "HEAD"), Answers.stored),
)
