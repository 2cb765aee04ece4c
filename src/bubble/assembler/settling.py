"""What others decide about a tool call: whether it may run, and what came of it (spec 1, "Tool-Call Pauses", "Out-of-Loop Tool Results").

A decision is shown twice: in the state of the call's own part, and as a fact that says who decided. It may come before the call's own
chunks have said all (a call waits from the moment on which it is known), and these would take the part back to where it was. So a decision
that was made is upheld: whoever decided first has decided. Of several results for a call the first one counts, as it does for the agent
that waits for it; a later one is told as a fact, and changes nothing.
"""

from __future__ import annotations

from typing import Final

from bubble.assembler.fields import Part
from bubble.assembler.messages import APPROVAL, TOOL_RESULT, MessagePart
from bubble.assembler.records import ApprovalRecord, ResultRecord
from bubble.assembler.runs import Call, Run, Waiting
from bubble.assembler.segment import Segment
from bubble.assembler.stage import Stage

__all__ = ["carry_out", "uphold"]

_UNDECIDED: Final = frozenset({"input-streaming", "input-available", "approval-requested"})
_WITHOUT_OUTPUT: Final = frozenset({"input-available", "approval-requested"})


def carry_out(stage: Stage, run: Run, waiting: Waiting) -> None:
    """Shows a decision on a call that is known."""
    record = waiting.record
    segment = run.calls[record.tool_call_id].segment
    fact = _approve(run, segment, record) if isinstance(record, ApprovalRecord) else _settle(run, segment, record)
    stage.state(run, record.principal_id, fact, waiting.anchor)


def uphold(run: Run, call_id: str, call: Call) -> None:
    """After a chunk of the call's author: what was decided on it still holds."""
    if run.calls.get(call_id) is not call:
        return
    decision, result = run.decided.get(call_id), run.results.get(call_id)
    if decision is None and result is None:
        return
    part = call.segment.reducer.tool(call_id) or {}
    state = part.get("state")
    if result is not None and state in _WITHOUT_OUTPUT:
        _give_result(call.segment, result)
    elif decision is not None and (state == "approval-requested" or (state == "input-available" and _is_decided(part))):
        _give_verdict(call.segment, decision)


def _is_decided(part: MessagePart) -> bool:
    approval = part.get("approval")
    return isinstance(approval, dict) and isinstance(approval.get("approved"), bool)


def _approve(run: Run, segment: Segment, record: ApprovalRecord) -> Part:
    run.decided.setdefault(record.tool_call_id, record)
    part = segment.reducer.tool(record.tool_call_id) or {}
    if part.get("state") in _UNDECIDED:
        _give_verdict(segment, record)
    data: Part = {"toolCallId": record.tool_call_id, **_verdict(record), "principalId": record.principal_id}
    return {"type": APPROVAL, "data": data}


def _verdict(record: ApprovalRecord) -> Part:
    return {"approved": record.approved} | ({} if record.reason is None else {"reason": record.reason})


def _give_verdict(segment: Segment, record: ApprovalRecord) -> None:
    call_id = record.tool_call_id
    asked = (segment.reducer.tool(call_id) or {}).get("approval")
    approval: Part = {"id": call_id, **(asked if isinstance(asked, dict) else {}), **_verdict(record)}
    segment.amend_tool(call_id, {"state": "approval-responded", "approval": approval})


def _settle(run: Run, segment: Segment, record: ResultRecord) -> Part:
    if run.results.setdefault(record.tool_call_id, record) is record:
        _give_result(segment, record)
    data: Part = {
        "toolCallId": record.tool_call_id,
        "input": record.input,
        "output": record.output,
        "principalId": record.principal_id,
    }
    return {"type": TOOL_RESULT, "data": data}


def _give_result(segment: Segment, record: ResultRecord) -> None:
    call_id = record.tool_call_id
    part = segment.reducer.tool(call_id) or {}
    if "input" not in part or part.get("state") == "input-streaming":
        segment.amend_tool(call_id, {"input": record.input})
    segment.show({"type": "tool-output-available", "toolCallId": call_id, "output": record.output})
