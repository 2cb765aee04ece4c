"""One recorded frame of each kind and the exact event that comes of it: the type, the id, and the data to the byte."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from bubble.watch import WatchCursor

__all__ = ["BOT", "CATALOGUE", "SESSION", "Line", "body", "cursor_text", "rows", "said", "spoken"]

BOT = "bot-one"
SESSION = "thread-1"

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Line:
    """What a frame becomes for the watch of `BOT` and `SESSION`. `counter` None: the event has no id."""

    frame: Json
    type: str
    data: str
    counter: int | None = None
    generation: int = 0

    @property
    def id(self) -> str | None:
        return None if self.counter is None else cursor_text(self.counter, generation=self.generation)

    @property
    def record(self) -> bytes:
        """The exact bytes of the server-sent event."""
        id_line = f"id: {self.id}\n" if self.id is not None else ""
        return f"event: {self.type}\n{id_line}data: {self.data}\n\n".encode()


def cursor_text(after: int, *, generation: int = 0, bot: str = BOT, session: str = SESSION) -> str:
    cursor = WatchCursor(bot_id=bot, session_id=session, generation=generation, after_updated_seq=after)
    return cursor.encode()


def body(value: object) -> str:
    """A row's body on the wire."""
    return base64.b64encode(json.dumps(value).encode()).decode()


def spoken(text: str) -> Json:
    """The body of a text message."""
    return {"kind": "send-message", "message": {"type": "text", "content": text}}


def said(updated: int, text: str = "hello", **entry: object) -> Json:
    """The entry of a text message."""
    return {
        "seq": str(updated),
        "updatedSeq": str(updated),
        "entryKind": "send-message",
        "entryId": f"e{updated}",
        "body": body(spoken(text)),
        **entry,
    }


def rows(*entries: Json, deletes: list[Json] | None = None, **fields: object) -> Json:
    """A batch of this bot and session."""
    return {
        "rows": {"agentId": BOT, "sessionId": SESSION, "entries": list(entries), "deletes": deletes or [], **fields}
    }


_OWN: Json = {"agentId": BOT, "sessionId": SESSION}

CATALOGUE: list[Line] = [
    Line(
        frame={"connected": {"streamId": "s-1", "serverTimeMs": "1778070896789", "absoluteLifetimeMs": 3600000}},
        type="connected",
        data='{"streamId":"s-1","serverTimeMs":"1778070896789","absoluteLifetimeMs":"3600000"}',
    ),
    Line(
        frame={"heartbeat": {"serverTimeMs": 1778070896790}},
        type="heartbeat",
        data='{"serverTimeMs":"1778070896790"}',
    ),
    Line(
        frame=rows(said(22, "Grüße\n\u2028"), replay=True),
        type="message",
        counter=22,
        data='{"botId":"bot-one","sessionId":"thread-1","generation":0,"seq":"22","updatedSeq":"22","entryId":"e22",'
        '"replay":true,"operation":"upsert","text":"Gr\\u00fc\\u00dfe\\n\\u2028"}',
    ),
    Line(
        frame=rows(
            {
                "seq": 23,
                "updatedSeq": 24,
                "entryKind": "message",
                "entryId": "u1",
                "body": body({"kind": "message", "role": "user", "content": "hi"}),
            }
        ),
        type="entry",
        counter=24,
        data='{"botId":"bot-one","sessionId":"thread-1","generation":0,"seq":"23","updatedSeq":"24","entryId":"u1",'
        '"replay":false,"entryKind":"message","entry":{"kind":"message","role":"user","content":"hi"}}',
    ),
    Line(
        frame=rows(
            {
                "seq": "25",
                "updatedSeq": "25",
                "entryKind": "tool-call",
                "entryId": "t1",
                "bodyOmitted": True,
                "blobHash": "abc",
            }
        ),
        type="entry.unavailable",
        counter=25,
        data='{"botId":"bot-one","sessionId":"thread-1","generation":0,"seq":"25","updatedSeq":"25","entryId":"t1",'
        '"replay":false,"entryKind":"tool-call","bodyOmitted":true,"blobHash":"abc"}',
    ),
    Line(
        frame=rows(deletes=[{"seq": "22", "updatedSeq": "26", "entryId": "e22"}]),
        type="message.deleted",
        counter=26,
        data='{"botId":"bot-one","sessionId":"thread-1","generation":0,"seq":"22","updatedSeq":"26","entryId":"e22",'
        '"replay":false}',
    ),
    Line(
        frame={"cleared": {**_OWN, "newGeneration": 3}},
        type="reset",
        counter=0,
        generation=3,
        data='{"botId":"bot-one","sessionId":"thread-1","generation":3}',
    ),
    Line(
        frame={"turnFailed": {**_OWN, "turnId": "r1", "code": "INTERNAL", "summary": "No.", "failedAtMs": "7"}},
        type="turn.failed",
        data='{"botId":"bot-one","sessionId":"thread-1","turnId":"r1","code":"INTERNAL","summary":"No.","failedAtMs":"7"}',
    ),
    Line(
        frame={"agentStateChanged": {"agentId": BOT, "families": ["ROSTER", 7], "changedAtMs": 8}},
        type="bot.state.changed",
        data='{"botId":"bot-one","families":["ROSTER",7],"changedAtMs":"8"}',
    ),
    Line(
        frame={
            "rosterChanged": {
                "kind": "UPDATED",
                "agentId": BOT,
                "agent": {"id": BOT, "name": "One", "createdAtMs": 5},
                "changedFields": ["name"],
                "changedAtMs": 9,
            }
        },
        type="bot.updated",
        data='{"botId":"bot-one","kind":"UPDATED","bot":{"id":"bot-one","name":"One","createdAtMs":"5"},'
        '"changedFields":["name"],"changedAtMs":"9"}',
    ),
    Line(
        frame={
            "agentState": {
                "snapshot": True,
                "live": [{**_OWN, "isRunning": True, "sinceMs": 5}],
                "client": [{"agentId": BOT, "open": True}],
            }
        },
        type="agent.state",
        data='{"botId":"bot-one","sessionId":"thread-1","snapshot":true,'
        '"live":[{"agentId":"bot-one","sessionId":"thread-1","isRunning":true,"sinceMs":"5"}],'
        '"client":[{"agentId":"bot-one","open":true}]}',
    ),
    Line(
        frame={
            "computerActions": {
                "actions": [{"agentId": BOT, "type": "CLICK", "x": 3, "y": 4.5, "button": 1, "count": 2, "atMs": "10"}]
            }
        },
        type="computer.actions",
        data='{"botId":"bot-one","actions":[{"agentId":"bot-one","type":"CLICK","x":3,"y":4.5,"button":1,"count":2,'
        '"atMs":"10"}]}',
    ),
    Line(
        frame={
            "boxState": {
                "snapshot": True,
                "state": {"runState": "RUNNING", "updatedAtMs": 6, "imageTag": "v1", "imageGitSha": "f00"},
                "staticSnapshotPath": "/s",
                "staticSnapshotMatchesPin": False,
                "staticSnapshotPin": "p",
            }
        },
        type="box.state",
        data='{"snapshot":true,"state":{"runState":"RUNNING","updatedAtMs":"6","imageTag":"v1","imageGitSha":"f00"},'
        '"imageTag":"v1","staticSnapshotPath":"/s","imageGitSha":"f00","staticSnapshotMatchesPin":false,'
        '"staticSnapshotPin":"p"}',
    ),
    Line(
        frame={
            "pageTitleChanged": {
                "storeId": "st",
                "canvasId": "c",
                "title": "Plan",
                "changedAtMs": 11,
                "contentChanged": True,
            }
        },
        type="page.title.changed",
        data='{"storeId":"st","canvasId":"c","title":"Plan","changedAtMs":"11","contentChanged":true}',
    ),
    Line(
        frame={"cursorTooOld": {**_OWN, "generation": 4}},
        type="resync-required",
        data='{"botId":"bot-one","sessionId":"thread-1","generation":4}',
    ),
]
