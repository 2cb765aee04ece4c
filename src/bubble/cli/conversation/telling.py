"""What of a thread's messages is told already, and what is next.

*Theory of operation.* What is printed cannot be changed any more, messages can. So a message is told part by part, each as soon as nothing
will come in between: the part is *settled*. Of a text that still grows the lines that are complete are told. What cannot be told yet is
*growing*: a terminal shows it below everything else, again and again. Where a part changes after it was told (a tool's outcome, a
reaction), the change is told in its turn. So everything is told, once, in the order in which a person at the thread would have seen it,
and a terminal and a pipe get the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from rich.console import RenderableType
from rich.text import Text

from bubble.assembler.messages import BubbleMessage, Grouping, MessagePart
from bubble.cli.conversation.facts import ENDINGS, is_fact, sentence
from bubble.cli.conversation.parts import DATA, PROSE, prose, shown
from bubble.cli.conversation.progress import Progress
from bubble.cli.conversation.stage import Stage, clock, headline, indented
from bubble.cli.conversation.tools import card, has_outcome, is_tool, state_of, tool_name
from bubble.cli.conversation.words import line, words

__all__ = ["Conversation"]

_CURSOR = "▌"
Items = Iterator[RenderableType]


class _Run:
    """What several messages have in common: whose run it is, which of them is the `last`, and whether its end is told."""

    def __init__(self, first: Progress) -> None:
        self.owner = first.bubble["principalId"]
        self.last = first.id
        self.is_over = False
        self._last_seq = 0

    def note(self, told: Progress) -> None:
        """One of its messages."""
        if told.message["role"] != "user":
            self.owner = told.bubble["principalId"]
        if told.bubble["firstSeq"] >= self._last_seq:
            self.last, self._last_seq = told.id, told.bubble["firstSeq"]


class Conversation:
    """Tells a thread. Give it each update of the thread's messages, and print what it gives, in order."""

    def __init__(self, *, grouping: Grouping = "speaker") -> None:
        self._splits = grouping == "speaker"
        self._stage = Stage()
        self._messages: dict[str, Progress] = {}
        self._open: dict[str, None] = {}
        self._last = ""
        self._tools: dict[str, str] = {}
        self._runs: dict[str, _Run] = {}

    def take(self, messages: Sequence[BubbleMessage]) -> list[RenderableType]:
        """What is to be told now that these messages, in the thread's order, are new or other than before."""
        for message in messages:
            self._note(message)
        ids = dict.fromkeys(chain(self._open, (message["id"] for message in messages)))
        told = sorted((self._messages[each] for each in ids), key=lambda each: each.bubble["firstSeq"])
        return [item for each in told for item in chain(self._tell(each), self._ending(each))]

    def pass_over(self, messages: Sequence[BubbleMessage]) -> None:
        """Takes these as told, so that only what comes to them and what changes of them is told later."""
        self.take(messages)
        for each in self._open:
            self._messages[each].pass_over()
        self._stage = Stage()

    def rest(self) -> list[RenderableType]:
        """Everything that is not told yet, as it stands: for the end."""
        told = [self._messages[each] for each in self._open]
        return [item for each in told for item in self._tell(each, everything=True)]

    def growing(self, *, room: int) -> list[RenderableType]:
        """What goes on below everything that is told; of a long text its last `room` characters."""
        return [item for each in self._open for item in self._grows(self._messages[each], room=room)]

    # --- what there is --------------------------------------------------------------------------------------------------------------

    def _note(self, message: BubbleMessage) -> None:
        told = self._messages.setdefault(message["id"], Progress(message))
        told.message = message
        self._open[told.id] = None
        if not self._last or told.bubble["firstSeq"] >= self._messages[self._last].bubble["firstSeq"]:
            self._last = told.id
        if (run_id := told.bubble.get("runId")) is not None:
            self._runs.setdefault(run_id, _Run(told)).note(told)
        for part in message["parts"]:
            if is_tool(part):
                self._tools[words(part.get("toolCallId"))] = tool_name(part)

    def _owner(self, told: Progress) -> str:
        run = self._runs.get(told.bubble.get("runId", ""))
        return words(told.bubble["principalId"] if run is None else run.owner)

    def _is_left(self, told: Progress) -> bool:
        """Whether nothing is added to the message any more: who speaks next in its run speaks in another one."""
        return told.is_finished or (self._splits and told.id != self._last)

    def _is_settled(self, told: Progress, part: MessagePart) -> bool:
        if self._is_left(told) or is_fact(part):
            return True
        kind, following = str(part["type"]), told.rest[1:]
        if kind in PROSE:
            return part.get("state") != "streaming"
        if is_tool(part):
            return has_outcome(part) or any(str(each["type"]) in PROSE for each in following)
        return bool(following) or not kind.startswith(DATA) or "id" not in part

    # --- telling --------------------------------------------------------------------------------------------------------------------

    def _tell(self, told: Progress, *, everything: bool = False) -> Items:
        yield from self._changes(told)
        yield from self._next_parts(told, everything=everything)
        if told.rest:
            return
        yield from self._error(told)
        yield from self._reactions(told)
        if everything or self._is_left(told):
            del self._open[told.id]

    def _next_parts(self, told: Progress, *, everything: bool) -> Items:
        while told.rest:
            part = told.rest[0]
            if not everything and not self._is_settled(told, part):
                if str(part["type"]) in PROSE and told.id == self._last:
                    yield from self._stage.body(told, prose(part, told.complete_lines(part)))
                return
            yield from self._part(told, part)
            told.end_part()

    def _part(self, told: Progress, part: MessagePart) -> Items:
        if is_fact(part):
            return self._stage.sentence(told, self._sentence(told, part))
        is_prose = str(part["type"]) in PROSE
        return self._stage.body(
            told, prose(part, told.remaining_text(part)) if is_prose else shown(part, is_over=told.is_finished)
        )

    def _sentence(self, told: Progress, part: MessagePart) -> str:
        return sentence(part, tools=self._tools, owner=self._owner(told))

    def _changes(self, told: Progress) -> Items:
        for index, before in enumerate(told.parts):
            now = told.message["parts"][index]
            if now is before:
                continue
            if is_tool(now):
                told.parts[index] = now
                if state_of(now) != state_of(before):
                    yield from self._stage.body(told, card(now, before=before, is_over=told.is_finished))
            elif told.is_finished:  # data may be replaced often: told again when that is over
                told.parts[index] = now
                if now != before and str(now["type"]).startswith(DATA):
                    yield from self._stage.body(told, shown(now))

    def _error(self, told: Progress) -> Items:
        error = told.bubble.get("error")
        if error is not None and not told.has_error:
            told.has_error = True
            yield from self._stage.body(told, Text(f"error: {line(error)}", style="red"))

    def _reactions(self, told: Progress) -> Items:
        before, now = told.reactions, told.bubble.get("reactions", {})
        if now == before:
            return
        told.reactions = dict(now)
        about = f" to what {words(told.bubble['principalId'])} said at {clock(told.bubble['createdAt'])}"
        for emoji in {**before, **now}:
            had, has = before.get(emoji, []), now.get(emoji, [])
            said = [f"{words(who)} reacts with {words(emoji)}" for who in has if who not in had]
            said += [f"{words(who)} takes back {words(emoji)}" for who in had if who not in has]
            for each in said:
                yield from self._stage.sentence(told, each if self._stage.speaking == told.id else each + about)

    def _ending(self, told: Progress) -> Items:
        """How the run ended, below the last of its messages."""
        run, outcome = self._runs.get(told.bubble.get("runId", "")), told.bubble.get("outcome", "")
        if run is None or run.is_over or not told.is_finished or run.last != told.id:
            return
        run.is_over = True
        if outcome in ENDINGS:
            yield from self._stage.sentence(told, f"the run of {words(run.owner)} {ENDINGS[outcome]}", style="red")

    # --- what grows -----------------------------------------------------------------------------------------------------------------

    def _grows(self, told: Progress, *, room: int) -> Items:
        rows = [row for row in self._growing_rows(told, room=room) if row is not None]
        if not rows and not told.is_finished and self._owner(told) == words(told.bubble["principalId"]):
            rows = [Text("…", style="dim")]
        if rows and self._stage.speaking != told.id:
            yield Text("")
            yield headline(told)
        yield from map(indented, rows)

    def _growing_rows(self, told: Progress, *, room: int) -> Iterator[RenderableType | None]:
        for number, part in enumerate(told.rest):
            if is_fact(part):
                yield Text(self._sentence(told, part), style="dim")
            elif str(part["type"]) in PROSE:
                text = str(part.get("text", "")) if number else told.remaining_text(part)
                yield prose(part, text[-room:], cursor=_CURSOR if part.get("state") == "streaming" else "")
            else:
                yield shown(part)
