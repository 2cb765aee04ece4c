"""What the recorded agents' answers should come to: by hand, from what those agents were made to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.reef.recordings import Recording

__all__ = ["Expected", "expected"]

Call = tuple[str, object, object]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the thread holds in the end. `error` is part of the error; None: there is none. `calls` are (tool, input, output)."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[Call] = ()
    files: Sequence[str] = ()
    error: str | None = None
    outcome: str = "success"


def _failed(error: str, text: str = "") -> Expected:
    return Expected(text=text, error=error, outcome="failed")


_THINKING: Final = "thinking..."
_HELLO: Final = "Hello streaming world"
_STREAM: Final = Expected(text=_THINKING + _HELLO)
_ASK: Final = Expected(text=_THINKING + "need approval", calls=[("approve", {"amount": 12}, None)])
_WEATHER: Final = {"city": "Oslo", "n": 3}
_AGAIN: Final = Expected(text=_THINKING + "echo: again")
_ECHO: Final = Expected(text=_THINKING + "echo: hello")
_VERSION: Final = _failed("is not supported by this handler")
_LOST: Final = "was lost"

# The scenarios that the servers of a2a-sdk were made to play, by the place of the exchange in the recording.
_SDK: Final[Mapping[str, Mapping[int, Expected]]] = {
    "auth": {0: Expected(text=_THINKING + "log in at https://idp.example/")},
    # A task that is not known, or over, is given up for a new one: what comes then is the recording's next answer.
    "bad_ids": {
        0: Expected(text=_THINKING + "echo: hi"),
        1: Expected(text=_THINKING + "echo: hi"),
        2: _ASK,
        3: Expected(text="resumed with 'hi'"),
        4: Expected(text="resumed with 'hi'"),
    },
    "empty": {0: Expected(text=_THINKING)},
    "failed": {0: _failed("model quota exceeded", _THINKING)},
    "files": {0: Expected(text=_THINKING, files=["data:image/png;base64,iVBORyBmYWtl", "https://example.test/d.pdf"])},
    "gap_keepalive": {0: Expected(text=_THINKING + "after a long silence")},
    "message": {0: Expected(text="just a message: message hi")},
    "reject": {0: _failed("not allowed", _THINKING)},
    "slow_cancel": {0: Expected(text=_THINKING + "tick0 tick2 ", outcome="interrupted")},
    "snapshot": {0: _STREAM},
    "snapshot2": {0: _STREAM},
    "statusonly": {0: Expected(text=_THINKING + "answer in status message")},
    "stream": {0: _STREAM},
    "terminal_reuse": {0: _STREAM, 1: _AGAIN, 2: _AGAIN},
    "tool": {
        0: Expected(text=_THINKING + "let me look. It is 4.5 C.", calls=[("get_weather", _WEATHER, {"temp": 4.5})])
    },
    "version_header": dict.fromkeys(range(6), _ECHO),
}

# Where a server differs: by the beginning of its name.
_OF_SERVERS: Final[Mapping[str, Mapping[str, Mapping[int, Expected]]]] = {
    "v1": {
        "ask_resume": {
            0: _ASK,
            1: Expected(text="resumed with {'id': 'call-9', 'response': {'ok': True}, 'name': 'approve'}"),
        },
        "drop_resubscribe": {0: _failed(_LOST, _THINKING + "tick0 tick2 tick4 tick6 tick8 tick10 ")},
        "malformed": dict.fromkeys(range(3), _failed("")),
        "raise": {0: _failed("exception", _THINKING)},
        "version_header": {0: _VERSION, 1: _ECHO, 2: _VERSION, 3: _ECHO, 4: _VERSION, 5: _VERSION},
        "wrong_shape": {0: _failed("Validation failed")},
    },
    "v1-jsonrpc": {"raise": {0: _failed("boom in executor", _THINKING)}},
    "v1srv-compat03-jsonrpc": {
        "raise": {0: _failed("boom in executor", _THINKING)},
        "version_header": {0: _ECHO, 1: _VERSION, 2: _ECHO, 3: _VERSION, 4: _VERSION, 5: _VERSION},
        "wrong_shape": {0: _failed("Invalid Request")},
    },
    "v03": {
        "ask_resume": {
            0: _ASK,
            1: Expected(text="resumed with {'id': 'call-9', 'name': 'approve', 'response': {'ok': True}}"),
        },
        # What was said between the loss and the return is not told again by this generation.
        "drop_resubscribe": {0: _failed(_LOST, _THINKING + "tick0 tick2 tick6 tick8 tick10 tick12 tick14 tick16 ")},
        "raise": {0: _failed(_LOST)},
        # The server never ended the stream; here it is cut.
        "slow_cancel": {0: _failed(_LOST, _THINKING + "tick0 tick2 ")},
    },
    "v03-jsonrpc": {
        "malformed": dict.fromkeys(range(3), _failed("")),
        "wrong_shape": {0: _failed("Invalid parameters")},
    },
    "v03-rest": {
        "malformed": {0: _ECHO, 1: Expected(text=_THINKING + "echo: "), 2: _failed("404")},
        "wrong_shape": {0: _failed(_LOST)},
    },
    "dockerlike": {
        "bad_ids": dict.fromkeys(range(2), Expected(text=_HELLO)),
        "drop_resubscribe": {0: _failed(_LOST, "tick0 tick1 tick2 tick6 tick7 tick8 ")},
        "hello": {0: Expected(text=_HELLO)},
        "raise": {0: _failed("boom in executor")},
        "slow_cancel": {0: Expected(text="tick0 tick1 tick2 ", outcome="interrupted")},
        "terminal_reuse": dict.fromkeys(range(3), Expected(text=_HELLO)),
        "wrong_shape": {0: _failed("method not found"), 1: Expected(text=_HELLO), 2: Expected(text=_HELLO)},
    },
}

_PENDING: Final = {"ticket": "T-1", "status": "pending"}
_WAITING: Final = Expected(text="Waiting for approval.", calls=[("approve", {"amount": 12}, _PENDING)])
_TOLD: Final = Expected(text="The tool said [('status', 'approved')]")
_NOT_GIVEN: Final = Expected(text="It was not provided a function response for the function call.")
_UNKNOWN_CALL: Final = _failed("Function call not found for function response ids")

_ADK: Final[Mapping[str, Mapping[int, Expected]]] = {
    "empty": {0: Expected()},
    "errcode": {0: _failed("blocked by safety", "blocked by safety")},
    "hello": {0: Expected(text=_HELLO)},
    "long_resume_fr": {0: _WAITING, 1: _TOLD},
    "long_resume_text": {0: _WAITING, 1: Expected(text=_HELLO)},
    "raise": {0: _failed("model exploded", "model exploded")},
    "second_turn": {0: Expected(text=_HELLO), 1: Expected(text=_HELLO), 2: Expected(text=_HELLO)},
    "slow_cancel": {0: Expected(outcome="interrupted")},
    "think": {0: Expected(reasoning="pondering", text="Hi")},
    "tool": {
        0: Expected(
            text="Let me look. The tool said [('city', 'Oslo'), ('temp', 4.5)]",
            calls=[("get_weather", _WEATHER, {"temp": 4.5, "city": "Oslo"})],
        )
    },
    "resume_variants": {
        0: _WAITING,
        1: _TOLD,
        2: _UNKNOWN_CALL,
        3: _TOLD,
        4: _UNKNOWN_CALL,
        5: _failed("Input should be a valid dictionary"),
    },
}
_OF_ADK: Final[Mapping[str, Mapping[str, Mapping[int, Expected]]]] = {
    "adk-default-1.0-ext": {
        "errcode": {0: _failed("blocked by safety")},
        "long_resume_text": {
            0: _WAITING,
            1: _NOT_GIVEN,
        },
        "raise": {0: _failed("model exploded")},
        "resume_variants": {0: _NOT_GIVEN},
    },
    "adk-sse": {"slow_cancel": {0: Expected(text="tick0 tick1 tick2 tick3 tick4 ", outcome="interrupted")}},
    "adk03": {"slow_cancel": {0: _failed(_LOST)}},
}


def expected(recording: Recording, at: int) -> Expected:
    """What the message that was sent at this place of the recording should come to."""
    is_adk = recording.server.startswith("adk")
    tables = [_ADK if is_adk else _SDK]
    tables += [
        table for server, table in (_OF_ADK if is_adk else _OF_SERVERS).items() if recording.server.startswith(server)
    ]
    fitting = [table[recording.scenario][at] for table in tables if at in table.get(recording.scenario, {})]
    assert fitting, f"nobody has said what {recording}, exchange {at}, should come to"
    return fitting[-1]
