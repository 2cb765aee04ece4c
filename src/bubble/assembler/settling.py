"""What others decide about a tool call: whether it may run, and what came of it (spec 1, "Tool-Call Pauses", "Out-of-Loop Tool Results").

A decision is shown twice: in the state of the call's own part, and as a fact that says who decided.
"""

from __future__ import annotations

from typing import Final

from bubble.assembler.fields import Part
from bubble.assembler.messages import APPROVAL, TOOL_RESULT
from bubble.assembler.records import ApprovalRecord, ResultRecord
from bubble.assembler.runs import Run, Waiting
from bubble.assembler.segment import Segment
from bubble.assembler.stage import Stage

__all__ = ["carry_out"]

_UNDECIDED: Final = frozenset({"input-streaming", "input-available", "approval-requested"})


def carry_out(stage: Stage, run: Run, waiting: Waiting) -> None:
    """Shows a decision on a call that is known."""
    record = waiting.record
    segment = run.calls[record.tool_call_id]
    fact = _approve(segment, record) if isinstance(record, ApprovalRecord) else _give_result(segment, record)
    stage.state(run, record.principal_id, fact, waiting.anchor)


def _approve(segment: Segment, record: ApprovalRecord) -> Part:
    call_id = record.tool_call_id
    verdict: Part = {"approved": record.approved} | ({} if record.reason is None else {"reason": record.reason})
    part = segment.reducer.tool(call_id) or {}
    if part.get("state") in _UNDECIDED:
        asked = part.get("approval")
        approval: Part = {"id": call_id, **(asked if isinstance(asked, dict) else {}), **verdict}
        segment.amend_tool(call_id, {"state": "approval-responded", "approval": approval})
    return {"type": APPROVAL, "data": {"toolCallId": call_id, **verdict, "principalId": record.principal_id}}


def _give_result(segment: Segment, record: ResultRecord) -> Part:
    call_id = record.tool_call_id
    part = segment.reducer.tool(call_id) or {}
    if "input" not in part or part.get("state") == "input-streaming":
        segment.amend_tool(call_id, {"input": record.input})
    segment.show({"type": "tool-output-available", "toolCallId": call_id, "output": record.output})
    data: Part = {
        "toolCallId": call_id,
        "input": record.input,
        "output": record.output,
        "principalId": record.principal_id,
    }
    return {"type": TOOL_RESULT, "data": data}
