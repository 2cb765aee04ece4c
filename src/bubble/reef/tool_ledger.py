"""The tool calls of one run: each is shown once, and so is what it came to, however often the agent sends either."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from bubble.protocol.identifiers import new_id
from bubble.protocol.jsontext import dump_json
from bubble.reef.events import Carrier
from bubble.reef.sayings import Event, Saying, ToolInput, ToolOutput
from bubble.reef.tool_data import FunctionCall, FunctionResponse

__all__ = ["ToolLedger"]


@dataclass(slots=True, kw_only=True)
class _Call:
    id: str
    name: str
    outputs: list[bytes] = field(default_factory=list)


class ToolLedger:
    """What of calls and responses is to be said. `repeats` tells that the content is known to repeat what was sent before, if it was."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._carriers: defaultdict[tuple[str, bytes], set[Carrier]] = defaultdict(
            set
        )  # of calls without an id of the agent's

    def call(self, call: FunctionCall, *, carrier: Carrier, repeats: bool) -> list[Saying]:
        """A call: new, or one that is known by its id, or, without an id, by being the same in another place."""
        if call.id in self._calls or (call.id is None and self._is_known(call, carrier, repeats=repeats)):
            return []
        ours = _Call(id=call.id or new_id(), name=call.name)
        self._calls[ours.id] = ours
        return [ToolInput(tool_call_id=ours.id, name=ours.name, input=call.args)]

    def response(self, response: FunctionResponse) -> list[Saying]:
        """A response. One whose call this run does not show is no outcome of anything here; it is passed on as data."""
        output = dump_json(response.output)
        call = self._answered(response, output)
        if call is None:
            return [Event(name="data", data=response.raw)]
        if output in call.outputs:
            return []
        call.outputs.append(output)
        return [ToolOutput(tool_call_id=call.id, output=response.output)]

    def _is_known(self, call: FunctionCall, carrier: Carrier, *, repeats: bool) -> bool:
        carriers = self._carriers[call.name, dump_json(call.args)]
        is_known = bool(carriers) if repeats else bool(carriers - {carrier})
        if not is_known:
            carriers.add(carrier)
        return is_known

    def _answered(self, response: FunctionResponse, output: bytes) -> _Call | None:
        if response.id is not None:
            return self._calls.get(response.id)
        named = [call for call in self._calls.values() if response.name in {None, call.name}]
        repeated = (call for call in named if output in call.outputs)
        waiting = (call for call in named if not call.outputs)
        return next(waiting, None) or next(repeated, None)
