"""An agent's events, turned into what is said in one run of the bot (spec 5, "Translating the agent's reply").

*Theory of operation.* The translator reads and says nothing itself: events in, sayings out. Every content of an event, a message or an
artifact, is looked at as a whole first: how much of its text was said before (`said`), and whether it repeats by its nature. Then its parts
are gone through in order, less what is known. Tool calls are known by their ids, files and data by what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bubble.protocol.events import Outcome
from bubble.protocol.jsontext import JSONValue, dump_json
from bubble.protocol.parts import EMPTY
from bubble.reef.discretion import shortened, without_secrets
from bubble.reef.events import (
    FINISHED,
    WAITING,
    AgentEvent,
    Carrier,
    Content,
    DataPart,
    FilePart,
    Part,
    TaskState,
    TextPart,
)
from bubble.reef.files import shown
from bubble.reef.said import Passage
from bubble.reef.sayings import EndBlock, Event, Failure, Saying
from bubble.reef.tool_data import FunctionCall, FunctionResponse, Nothing, Opaque, Unsayable, classify_data_part
from bubble.reef.tool_ledger import ToolLedger
from bubble.reef.voices import Voice, speech, thought

__all__ = ["Translator"]

# In characters; nobody reads more, and an event has an end.
_LONGEST_FAILURE: Final = 10_000
# Of which secrets may have to be left out.
_LOOKED_AT: Final = 50_000
_OUTCOMES: Final[dict[TaskState, Outcome]] = {
    "completed": "success",
    "failed": "failed",
    "rejected": "failed",
    "canceled": "interrupted",
}


class Translator:
    """One reply: `translate` every event in order, then `finalize`.

    `continues` is the task that the message continued; `known_artifacts` are the artifacts that earlier turns of that task brought.
    """

    def __init__(self, *, continues: str | None = None, known_artifacts: Sequence[str] = ()) -> None:
        self.task_id = continues
        self.state: TaskState | None = None
        self.outcome: Outcome | None = None
        self._artifacts = dict.fromkeys(known_artifacts)  # in order
        self._known_artifacts = frozenset(known_artifacts)
        self._continues = continues is not None
        self._state_before: TaskState | None = None
        self._is_closed = False
        self._marks_deltas = False
        self._text = speech()
        self._thought = thought()
        self._tools = ToolLedger()
        self._files: set[FilePart] = set()
        self._data: dict[bytes, Carrier] = {}
        self._left_out_for: set[str] = set()

    @property
    def artifacts(self) -> Sequence[str]:
        """The artifacts that the task has brought so far."""
        return list(self._artifacts)

    @property
    def is_waiting(self) -> bool:
        """Whether the task goes on once somebody has answered."""
        return self.state in WAITING

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to be read: the task has finished or waits, or the reply was a plain message."""
        return self._is_closed or self.is_waiting

    def translate(self, event: AgentEvent) -> list[Saying]:
        """What the event adds. Nothing after the end."""
        if self._is_closed:
            return []
        self.task_id = event.task_id or self.task_id
        sayings = [saying for content in event.contents for saying in self._content(content, event)]
        self._take_state(event)
        return [*sayings, *self._end(event)]

    def hear_the_end(self) -> None:
        """The stream has ended as it should. If all that it showed is a task that waits, then that was no look back: it waits again."""
        if self.state is None:
            self.state = self._state_before

    def finalize(self) -> list[Saying]:
        """What is left to say when nothing more comes, however the stream ended. Nothing after the end, and nothing the second time."""
        if self._is_closed:
            return []
        self._is_closed = True
        return [*self._text.flush(), *self._thought.flush(), EndBlock()]

    # --- states -----------------------------------------------------------------------------------------------------------------

    def _take_state(self, event: AgentEvent) -> None:
        # A task that is continued may be shown first as it was before: still waiting, for what has just been sent.
        if event.carrier == "task" and self._continues and event.state in WAITING:
            self._state_before = event.state
        elif event.state is not None:
            self.state = event.state
        self._continues = False

    def _end(self, event: AgentEvent) -> Iterator[Saying]:
        if event.carrier == "message" and self.state is None:  # otherwise a task says it, and goes on
            self.outcome = "success"
        elif self.state in FINISHED:
            self.outcome = _OUTCOMES[self.state]
        if self.outcome is None:
            return
        yield from self.finalize()
        if self.outcome == "failed":
            words = _last_words(event) or f"The agent ended its work as {self.state}."
            yield Failure(shortened(without_secrets(shortened(words, _LOOKED_AT)), _LONGEST_FAILURE))

    # --- contents ---------------------------------------------------------------------------------------------------------------

    def _content(self, content: Content, event: AgentEvent) -> Iterator[Saying]:
        if event.carrier == "task" and content.id in self._known_artifacts:
            return  # an earlier turn's
        self._take_note(content)
        for voice in (self._text, self._thought):
            passage = self._passage(content, event, voice)
            yield from voice.begin(passage, content, is_said_otherwise=_is_the_error(content, event))
        repeats = event.carrier == "task" or self._is_whole(content, event)
        for part in content.parts:
            yield from self._part(part, content, repeats=repeats)

    def _take_note(self, content: Content) -> None:
        if content.carrier == "artifact" and content.id is not None:
            self._artifacts.setdefault(content.id)
        self._marks_deltas = self._marks_deltas or any(
            isinstance(part, TextPart) and part.partial for part in content.parts
        )

    def _passage(self, content: Content, event: AgentEvent, voice: Voice) -> Passage:
        parts = [part for part in content.parts if isinstance(part, TextPart) and voice.says(part)]
        is_delta = bool(parts) and all(part.partial for part in parts)
        return Passage(
            text="".join(part.text for part in parts),
            carrier=content.carrier,
            is_delta=is_delta,
            is_whole=not is_delta and self._is_whole(content, event),
            is_copy=event.carrier == "task",
            is_composed=len(content.parts) > 1,
            append=content.append,
        )

    def _is_whole(self, content: Content, event: AgentEvent) -> bool:
        is_final = content.is_status and event.state in FINISHED | WAITING
        is_marked = self._marks_deltas or any(
            isinstance(part, TextPart) and part.partial is False for part in content.parts
        )
        return content.last_chunk or is_final or is_marked or event.carrier in {"task", "message"}

    # --- parts ------------------------------------------------------------------------------------------------------------------

    def _part(self, part: Part, content: Content, *, repeats: bool) -> Iterator[Saying]:
        if isinstance(part, TextPart):
            yield from (self._thought if part.thought else self._text).say(part.text)
            return
        others = self._other(part, content, repeats=repeats)
        for voice in (self._text, self._thought) if others else ():
            yield from voice.flush()
            voice.said.cut()
        yield from others

    def _other(self, part: FilePart | DataPart, content: Content, *, repeats: bool) -> list[Saying]:
        if isinstance(part, FilePart):
            return self._file(part)
        match classify_data_part(part):
            case FunctionCall() as call:
                return self._tools.call(call, carrier=content.carrier, repeats=repeats)
            case FunctionResponse() as response:
                return self._tools.response(response)
            case Nothing():
                return [Event(name=EMPTY)]
            case Opaque(data=data):
                return self._opaque(data, content.carrier, repeats=repeats)
            case Unsayable(reason):
                return self._left_out(reason)

    def _file(self, part: FilePart) -> list[Saying]:
        if part in self._files:
            return []
        self._files.add(part)
        return [shown(part)]

    def _opaque(self, data: JSONValue, carrier: Carrier, *, repeats: bool) -> list[Saying]:
        key = dump_json(data)
        is_known = key in self._data and (repeats or self._data[key] != carrier)
        self._data.setdefault(key, carrier)
        return [] if is_known else [Event(name="data", data=data)]

    def _left_out(self, reason: str) -> list[Saying]:
        # Once: whether it is another one cannot be told, and a snapshot brings each of them again.
        if reason in self._left_out_for:
            return []
        self._left_out_for.add(reason)
        return [Failure(f"Something of the reply is left out. {reason}")]


def _is_the_error(content: Content, event: AgentEvent) -> bool:
    return content.is_status and event.state in {"failed", "rejected"}


def _last_words(event: AgentEvent) -> str:
    spoken = (part for content in event.contents if content.is_status for part in content.parts)
    return "".join(part.text for part in spoken if isinstance(part, TextPart) and not part.thought).strip()
