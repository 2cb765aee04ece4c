"""The proof that the messages are right: those that were followed live, against the log and against what the replies' chunks make alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubble.assembler import Assembler, BubbleMessage, MessagePart, MessageReducer, ReducerError
from bubble.demo.proof import Claim
from bubble.demo.script import COUNT, GRACE, REFUND
from bubble.protocol.events import SequencedEvent
from bubble.protocol.jsontext import load_json

__all__ = ["prove_messages"]


async def prove_messages(
    stored: Sequence[SequencedEvent],
    followed: Sequence[BubbleMessage],
    served: Sequence[BubbleMessage],
    replies: Mapping[str, Sequence[bytes]],
    *,
    assembler: Assembler,
) -> list[Claim]:
    """What can be claimed of the messages: as they were `followed` live and `served` as a page; `replies` are recordings by their runs."""
    by_speaker = (await assembler.assemble(stored)).messages
    by_run = {message["id"]: message for message in (await assembler.assemble(stored, grouping="run")).messages}
    return [
        Claim.of(
            f"{len(by_speaker)} messages, followed live, are those that the whole log makes",
            _first_difference(by_speaker, followed),
        ),
        Claim.of("the server makes the same of it", _first_difference(by_speaker, served)),
        Claim.of(
            f"the messages of {len(replies)} replies are what their chunks make alone, part by part",
            _first_other_reply(by_run, replies),
        ),
        Claim.of("the refund waited for Grace and was made when she had approved it", _fault_of_refund(by_run)),
        Claim.of("the counting ended where Ada had it stopped", _fault_of_counting(by_run)),
    ]


def _first_difference(expected: Sequence[BubbleMessage], given: Sequence[BubbleMessage]) -> str | None:
    for want, got in zip(expected, given, strict=False):
        if want != got:
            return f"message {want['id']} is another one"
    if len(expected) != len(given):
        return f"the log makes {len(expected)} messages, here are {len(given)}"
    return None


def _first_other_reply(messages: Mapping[str, BubbleMessage], replies: Mapping[str, Sequence[bytes]]) -> str | None:
    for run_id, chunks in replies.items():
        parts = messages[run_id]["parts"] if run_id in messages else []
        for number, (want, got) in enumerate(zip(_folded(chunks), parts, strict=False), start=1):
            if want != got:
                return f"part {number} of {run_id} is another one"
        if len(parts) != len(_folded(chunks)):
            return f"{run_id} has {len(parts)} parts of {len(_folded(chunks))}"
    return None


def _folded(chunks: Sequence[bytes]) -> list[MessagePart]:
    reducer = MessageReducer()
    for text in chunks:
        chunk = load_json(text)
        if isinstance(chunk, dict):
            try:
                reducer.apply(chunk)
            except ReducerError:  # what the original would stop at, a thread passes over
                continue
    return [_closed(part) for part in reducer.parts()]


def _closed(part: MessagePart) -> MessagePart:
    # A finished run leaves no block open.
    is_open = part.get("state") == "streaming" and part["type"] in ("text", "reasoning")
    return {**part, "state": "done"} if is_open else part


def _fault_of_refund(messages: Mapping[str, BubbleMessage]) -> str | None:
    parts = messages[REFUND]["parts"] if REFUND in messages else []
    calls = [part for part in parts if part["type"] == "tool-refund"]
    facts = [part["data"] for part in parts if part["type"] == "data-bubble-approval"]
    if len(calls) != 1 or calls[0].get("state") != "output-available":
        return f"its call is not there once, with an outcome: {[call.get('state') for call in calls]}"
    approval = calls[0].get("approval")
    if not (isinstance(approval, dict) and approval.get("approved") is True):
        return "its call is not approved"
    deciders = [fact.get("principalId") for fact in facts if isinstance(fact, dict)]
    return None if deciders == [GRACE.principal_id] else f"it was decided by {deciders}"


def _fault_of_counting(messages: Mapping[str, BubbleMessage]) -> str | None:
    if COUNT not in messages:
        return "there is no such message"
    outcome = messages[COUNT]["metadata"]["bubble"].get("outcome")
    text = "".join(str(part["text"]) for part in messages[COUNT]["parts"] if part["type"] == "text")
    if outcome != "interrupted":
        return f"its outcome is {outcome}"
    counted = text.split()
    return None if counted == [str(number) for number in range(1, len(counted) + 1)] else f"it says {text[-40:]}"
