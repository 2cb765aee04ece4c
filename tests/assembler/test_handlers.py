"""Part handlers: what they are asked, what comes of their answers, and what happens when they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bubble.assembler import MessagePart, NativePart, PartHandler, create_assembler
from bubble.extensions.artifacts import ArtifactHandler
from tests.assembler.logs import (
    Event,
    approval,
    chunk,
    data_of,
    delta,
    native,
    numbered,
    said,
    start,
    started,
    texts,
    tool,
)
from tests.assembler.threads import run


class Mentions:
    """The handler of the documentation: `{kind: "mention", principalId}`."""

    kind = "mention"

    def to_chunks(self, part: NativePart) -> Sequence[Mapping[str, Any]] | None:
        who = part["principalId"]
        return [{"type": "data-app-mention", "id": f"mention:{who}", "data": {"principalId": who}}]

    def from_ui_part(self, part: MessagePart) -> NativePart | None:
        if part["type"] != "data-app-mention":
            return None
        data: Any = part["data"]
        return {"kind": "mention", "principalId": data["principalId"]}


class Given:
    """Says what it is told to."""

    def __init__(self, kind: str = "given", answer: Any = None) -> None:  # noqa: ANN401 - wrong ones, too
        self.kind = kind
        self.answer = answer
        self.asked: list[NativePart] = []

    def to_chunks(self, part: NativePart) -> Any:  # noqa: ANN401
        self.asked.append(part)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def from_ui_part(self, _: MessagePart) -> NativePart | None:
        return None


def assembled(log: list[Event], *handlers: PartHandler) -> list[Any]:
    return list(run(create_assembler(part_handlers=handlers).assemble(numbered(log))).messages)


@pytest.mark.requirement("TA-33", "TA-04")
def test_a_handlers_chunks_are_what_its_parts_show() -> None:
    [message] = assembled([native("mention", principalId="ann"), native("mention", principalId="ann")], Mentions())
    assert message["parts"] == [{"type": "data-app-mention", "id": "mention:ann", "data": {"principalId": "ann"}}]


@pytest.mark.requirement("TA-04")
def test_a_handler_sees_its_part_and_nothing_else() -> None:
    handler = Given(answer=[])
    assert assembled([*said("a"), native("given", x=1), native("other")], handler)[0]["parts"][0]["text"] == "a"
    assert handler.asked == [{"kind": "given", "x": 1}]


@pytest.mark.requirement("TA-33")
def test_a_handler_may_give_several_chunks_and_other_ones_than_data() -> None:
    said_so = Given(
        answer=[{"type": f"text-{step}", "id": "g", "delta": "given"} for step in ("start", "delta", "end")]
    )
    [message] = assembled([native("given")], said_so)
    assert message["parts"] == [{"type": "text", "text": "given", "state": "done"}]


@pytest.mark.requirement("TA-33")
def test_text_that_a_handler_gives_is_cut_by_a_window_like_any_other() -> None:
    thread = create_assembler(part_handlers=[Given(answer=[{"type": "text-delta", "id": "1", "delta": "b"}])]).open()
    run(thread.apply(numbered([start(), delta("a"), native("given"), native("given")])))
    run(thread.clear_window(3))
    assert [texts(message) for message in run(thread.window()).messages] == ["b"]


@pytest.mark.anyio
@pytest.mark.requirement("TA-34")
async def test_both_conversions_may_be_coroutine_functions() -> None:
    class Slow(Mentions):
        async def to_chunks(self, part: NativePart) -> Any:  # type: ignore[override]  # noqa: ANN401
            return super().to_chunks(part)

        async def from_ui_part(self, part: MessagePart) -> NativePart | None:  # type: ignore[override]
            return super().from_ui_part(part)

    assembler = create_assembler(part_handlers=[Slow()])
    snapshot = await assembler.assemble(numbered([native("mention", principalId="ann")]))
    [part] = await assembler.encode(snapshot.messages[0])
    assert (part.version, part.part) == ("bubble-v1", {"kind": "mention", "principalId": "ann"})


@pytest.mark.requirement("TA-35")
@pytest.mark.parametrize("kind", ["agent_event", "reaction"])
def test_a_handler_of_a_kind_of_the_core_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=f'"{kind}" is a kind of the core'):
        create_assembler(part_handlers=[Given(kind)])


@pytest.mark.requirement("TA-35")
def test_two_handlers_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match='two part handlers for "artifact"'):
        create_assembler(part_handlers=[ArtifactHandler(), Given("artifact")])


@pytest.mark.requirement("TA-35")
def test_a_handler_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        create_assembler(part_handlers=[Given("")])


@pytest.mark.requirement("TA-03", "TA-62")
def test_kinds_and_events_of_the_core_need_no_handler() -> None:
    log = [
        started(),
        native("agent_event", name="thinking", data={"a": 1}),
        native("agent_event", name="empty"),
        native("agent_event", name="step", id="s", data=1),
        native("agent_event", name="step", id="s", data=2),
        tool(),
        approval(),
    ]
    first, second = assembled(log)
    assert first["parts"][:-1] == [
        {"type": "data-bubble-agent-event", "data": {"name": "thinking", "data": {"a": 1}}},
        {"type": "data-bubble-agent-event", "data": {"name": "empty"}},
        {"type": "data-bubble-agent-event", "id": "s", "data": {"name": "step", "data": 2}},
    ]
    assert [part["type"] for part in second["parts"]] == ["data-bubble-approval"]


@pytest.mark.requirement("TA-37", "TA-98")
@pytest.mark.parametrize("payload", [{"a": [1, {"b": None}]}, {"__proto__": {"x": 1}, "constructor": 2}, {"id": 7}])
def test_a_kind_that_nobody_knows_is_shown_whole(payload: dict[str, Any]) -> None:
    [message] = assembled([native("novel", **payload)])
    assert message["parts"] == [{"type": "data-bubble-extension", "data": {"kind": "novel", **payload}}]


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize(
    "stumbles", [None, ValueError("no"), KeyError("x"), TypeError("x"), AttributeError("x"), IndexError("x")]
)
def test_a_part_over_which_its_handler_stumbles_is_shown_whole(stumbles: object) -> None:
    [message] = assembled([*said("a"), native("given", x=1), *said("b")], Given(answer=stumbles))
    assert data_of(message) == [{"kind": "given", "x": 1}]
    assert texts(message) == "ab"


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize("wrong", [{}, {"name": ""}, {"name": 7}, {"name": "empty", "data": 1}, {"name": "x", "id": 7}])
def test_an_agent_event_of_the_wrong_shape_is_shown_whole(wrong: dict[str, Any]) -> None:
    [message] = assembled([native("agent_event", **wrong)])
    assert message["parts"] == [{"type": "data-bubble-extension", "data": {"kind": "agent_event", **wrong}}]


@pytest.mark.requirement("TA-38")
@pytest.mark.parametrize("answer", [7, "chunk", [7], [{"id": "no type"}], {"type": "data-x"}])
def test_a_handler_that_gives_no_chunks_is_a_type_error_that_names_it(answer: object) -> None:
    with pytest.raises(TypeError, match='part handler of "given"'):
        assembled([native("given")], Given(answer=answer))


@pytest.mark.requirement("TA-38")
def test_any_other_failure_of_a_handler_comes_out_of_the_operation() -> None:
    with pytest.raises(OSError, match="unreachable"):
        assembled([native("given")], Given(answer=OSError("unreachable")))


class Counting(Given):
    """Counts its parts in one data part per author and run."""

    def __init__(self, fails: Exception | None = None) -> None:
        super().__init__("count", [{"type": "data-count", "id": "n", "data": 0}])
        self._fails = fails

    def fold(self, part: NativePart, current: Any) -> Any:  # noqa: ANN401
        if self._fails is not None and part.get("by") == "nothing":
            raise self._fails
        by: Any = part["by"]
        return (current or 0) + by


@pytest.mark.requirement("TA-33", "TA-69")
def test_a_handler_that_folds_is_given_what_its_authors_run_shows_now() -> None:
    log = [
        native("count", by=1),
        native("count", who="ann", by=5),
        native("count", by=2),
        native("count", run="s", by=7),
    ]
    assert [data_of(message) for message in assembled(log, Counting())] == [[3], [5], [7]]


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize("failure", [ValueError("x"), OSError("x")])
def test_a_part_that_cannot_be_folded_is_shown_whole(failure: Exception) -> None:
    [message] = assembled([native("count", by=1), native("count", by="nothing"), *said("a")], Counting(failure))
    assert data_of(message) == [1, {"kind": "count", "by": "nothing"}]


@pytest.mark.requirement("TA-38")
def test_a_handler_that_folds_must_name_one_part() -> None:
    handler = Counting()
    handler.answer = [{"type": "data-count", "data": 0}]
    with pytest.raises(TypeError, match="folds"):
        assembled([native("count", by=1)], handler)


@pytest.mark.requirement("TA-38")
def test_a_handler_that_folds_must_give_data() -> None:
    handler = Counting()
    handler.answer = [{"type": "text-delta", "id": "n", "delta": "1"}]
    with pytest.raises(TypeError, match="folds"):
        assembled([native("count", by=1)], handler)


class Folding(Given):
    """Folds to whatever it is told to, where a part says so."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401
        super().__init__("fold", [{"type": "data-fold", "id": "n", "data": None}])
        self._value = value

    def fold(self, part: NativePart, current: Any) -> Any:  # noqa: ANN401
        return self._value() if "odd" in part else [*(current or []), part["n"]]


async def later() -> list[int]:
    return [1]


def circular() -> list[Any]:
    value: list[Any] = []
    value.append({"a": value})
    return value


NO_JSON = [later, circular, set, object, lambda: {1: 2}, lambda: [{"a": [b"x"]}]]


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize("value", NO_JSON)
def test_a_part_that_folds_to_what_is_no_json_is_shown_whole(value: Callable[[], object]) -> None:
    log = [native("fold", n=1), native("fold", odd=True), native("fold", n=2), *said("a")]
    [message] = assembled(log, Folding(value))
    assert data_of(message) == [[1, 2], {"kind": "fold", "odd": True}]
    assert texts(message) == "a"


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize("value", NO_JSON[1:])
def test_a_part_whose_chunks_are_no_json_is_shown_whole(value: Callable[[], object]) -> None:
    handler = Given(answer=[{"type": "data-given", "data": value()}])
    [message] = assembled([native("given", x=1), *said("a")], handler)
    assert message["parts"][0] == {"type": "data-bubble-extension", "data": {"kind": "given", "x": 1}}


class Lines:
    """A list of lines. How often it was shown, and what it was begun with, is told in `looks` and `begun`."""

    def __init__(self, handler: Listing, lines: list[Any]) -> None:
        self._handler = handler
        self._lines = lines

    def add(self, part: NativePart, /) -> None:
        if part["line"] == "bad":
            raise OSError("bad")
        self._lines.append(part["line"])

    def value(self) -> Any:  # noqa: ANN401
        self._handler.looks += 1
        return self._lines.copy()


class Listing(Given):
    """Keeps the lines of each author and run as they come."""

    def __init__(self) -> None:
        super().__init__("line", [{"type": "data-lines", "id": "n", "data": None}])
        self.looks = 0
        self.begun: list[Any] = []

    def grow(self, current: Any, /) -> Lines:  # noqa: ANN401
        self.begun.append(current)
        return Lines(self, list(current or ()))


@pytest.mark.requirement("TA-33", "TA-69")
def test_what_a_handler_lets_grow_is_begun_once_per_author_and_run() -> None:
    handler = Listing()
    log = [
        native("line", who=who, run=run_id, line=n) for n, (who, run_id) in enumerate([("ann", "r"), ("bot", "s")] * 2)
    ]
    assert [data_of(message) for message in assembled(log, handler)] == [[[0, 2]], [[1, 3]]]
    assert handler.begun == [None, None]


@pytest.mark.requirement("TA-96", "TA-33")
def test_what_grows_is_asked_for_when_somebody_looks_and_what_was_seen_stays() -> None:
    handler = Listing()
    thread = create_assembler(part_handlers=[handler]).open()
    seen = []
    for first in (1, 101):
        run(thread.apply(numbered([native("line", line=first + n) for n in range(100)], first=first)))
        seen.append(run(thread.snapshot()).messages)
    assert [data_of(message) for [message] in seen] == [[[*range(1, 101)]], [[*range(1, 201)]]]
    assert handler.looks == 2


@pytest.mark.requirement("TA-39")
def test_a_part_that_cannot_be_added_is_shown_whole() -> None:
    [message] = assembled([native("line", line=1), native("line", line="bad"), native("line", line=2)], Listing())
    assert data_of(message) == [[1, 2], {"kind": "line", "line": "bad"}]


@pytest.mark.requirement("TA-39")
def test_what_grows_is_begun_once_however_many_parts_cannot_be_added() -> None:
    handler = Listing()
    log = [chunk("data-lines", id="n", data=["x"]), *[native("line", line="bad")] * 3, native("line", line=1)]
    [message] = assembled(log, handler)
    assert data_of(message) == [["x", 1], *[{"kind": "line", "line": "bad"}] * 3]
    assert handler.begun == [["x"]]


class Sums(Given):
    """Adds up when somebody looks, and stumbles where something is no number; `value` takes the place of the sum at 0."""

    def __init__(self, value: Callable[[], object] = int) -> None:
        super().__init__("sum", [{"type": "data-sum", "id": "n", "data": None}])
        self.value = value

    def grow(self, _: Any, /) -> Sum:  # noqa: ANN401
        return Sum(self)


class Sum:
    def __init__(self, handler: Sums) -> None:
        self._handler = handler
        self._numbers: list[Any] = []

    def add(self, part: NativePart, /) -> None:
        self._numbers.append(part["n"])

    def value(self) -> Any:  # noqa: ANN401
        return sum(self._numbers) or self._handler.value()


@pytest.mark.requirement("TA-39", "TA-98")
def test_data_that_its_handler_cannot_give_shows_what_was_added_last_until_it_can() -> None:
    thread = create_assembler(part_handlers=[Sums()]).open()
    shown = []
    for seq, log in enumerate(([native("sum", n=1)], [native("sum", n="x")], [chunk("data-sum", id="n", data=7)]), 1):
        run(thread.apply(numbered(log, first=seq)))
        shown.append(run(thread.snapshot()).messages[0]["parts"])
    assert shown == [
        [{"type": "data-sum", "id": "n", "data": 1}],
        [{"type": "data-bubble-extension", "id": "n", "data": {"kind": "sum", "n": "x"}}],
        [{"type": "data-sum", "id": "n", "data": 7}],
    ]


@pytest.mark.requirement("TA-39", "TA-98")
@pytest.mark.parametrize("value", NO_JSON)
def test_data_that_is_no_json_shows_what_was_added_last(value: Callable[[], object]) -> None:
    [message] = assembled([native("sum", n=0), *said("a")], Sums(value))
    assert data_of(message) == [{"kind": "sum", "n": 0}]
    assert texts(message) == "a"


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize("name", ["grow", "add"])
def test_a_handler_that_would_have_to_be_waited_for_while_it_grows_has_its_parts_shown_whole(name: str) -> None:
    async def wait(*_: object) -> None:
        raise AssertionError("Nobody waits for it.")

    handler = Sums()
    handler.grow = wait if name == "grow" else lambda _: SimpleNamespace(add=wait, value=int)  # type: ignore[method-assign, assignment, return-value]
    [message] = assembled([native("sum", n=1)], handler)
    assert message["parts"] == [{"type": "data-bubble-extension", "data": {"kind": "sum", "n": 1}}]


@pytest.mark.requirement("TA-33")
def test_a_chunk_that_gives_the_data_anew_is_what_grows_on() -> None:
    handler = Listing()
    log = [native("line", line=1), chunk("data-lines", id="n", data=["x"]), native("line", line=2)]
    assert [data_of(message) for message in assembled(log, handler)] == [[["x", 2]]]
    assert handler.begun == [None, ["x"]]


@pytest.mark.requirement("TA-33", "TA-80")
def test_data_that_grew_after_a_line_is_in_the_window_whole() -> None:
    thread = create_assembler(part_handlers=[Listing()]).open()
    run(thread.apply(numbered([*said("a"), native("line", line=1), native("line", line=2)])))
    run(thread.clear_window(4))
    [message] = run(thread.window()).messages
    assert message["parts"] == [{"type": "data-lines", "id": "n", "data": [1, 2]}]
