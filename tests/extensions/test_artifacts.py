"""Artifacts: one part per artifact of a run, which always shows what there is now."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bubble.extensions.artifacts import EXTENSION
from bubble.protocol.errors import InvalidRequest
from tests.assembler.logs import Event, data_of, native, numbered, parts, said
from tests.assembler.threads import ASSEMBLER, assembled, run


def artifact(op: object, artifact_id: object = "a", **fields: object) -> Event:
    run_id, who = fields.pop("run", "r"), fields.pop("who", "bot")
    return native("artifact", str(run_id), str(who), artifactId=artifact_id, op=op, **fields)


def what_is_there(*events: Event) -> list[Any]:
    return [data for message in assembled(events) for data in data_of(message)]


@pytest.mark.requirement("TA-88")
def test_an_artifact_is_one_part_replaced_in_place_where_it_was_made() -> None:
    log = [
        artifact("create", text="one"),
        *said("a"),
        artifact("create", "b", text="x"),
        artifact("replace", text="two"),
    ]
    [message] = assembled(log)
    assert [part["type"] for part in message["parts"]] == ["data-bubble-artifact", "text", "data-bubble-artifact"]
    assert parts(message, "data-bubble-artifact")[0] == {
        "type": "data-bubble-artifact",
        "id": "a",
        "data": {"artifactId": "a", "text": "two"},
    }


@pytest.mark.requirement("TA-88", "TA-69")
def test_an_artifact_of_another_author_or_another_run_is_another_one() -> None:
    log = [artifact("create", text="1"), artifact("append", text="2", who="ann"), artifact("append", text="3", run="s")]
    assert [data["text"] for data in what_is_there(*log)] == ["1", "2", "3"]


@pytest.mark.requirement("TA-89")
@pytest.mark.parametrize("content", [{"text": "t"}, {"data": {"rows": [1]}}, {"url": "https://example.org"}, {}])
def test_create_gives_an_artifact_whole(content: dict[str, object]) -> None:
    old = artifact("create", name="old", mediaType="text/plain", text="old")
    assert what_is_there(old, artifact("create", name="n", **content)) == [{"artifactId": "a", "name": "n", **content}]


@pytest.mark.requirement("TA-89")
def test_replace_gives_new_content_and_keeps_the_labels_that_it_does_not_mention() -> None:
    old = artifact("create", name="n", mediaType="text/plain", text="old")
    assert what_is_there(old, artifact("replace", mediaType="text/csv", data=[1])) == [
        {"artifactId": "a", "name": "n", "mediaType": "text/csv", "data": [1]}
    ]


@pytest.mark.requirement("TA-89")
def test_append_adds_to_the_text_and_may_name_it() -> None:
    log = [
        artifact("create", name="n", text="one "),
        artifact("append", text="two "),
        artifact("append", text="three", name="m"),
    ]
    assert what_is_there(*log) == [{"artifactId": "a", "name": "m", "text": "one two three"}]


@pytest.mark.requirement("TA-89")
@pytest.mark.parametrize(
    "before", [[], [artifact("create", data=1)], [artifact("create", text="x"), artifact("delete")]]
)
def test_append_to_what_is_no_text_begins_one(before: list[Event]) -> None:
    assert what_is_there(*before, artifact("append", text="t")) == [{"artifactId": "a", "text": "t"}]


@pytest.mark.requirement("TA-89")
@pytest.mark.parametrize(
    "before", [artifact("create", text="old"), artifact("replace", data=1), artifact("delete", text="old")]
)
def test_what_was_seen_of_an_artifact_stays_and_nothing_of_one_that_is_gone_comes_back(before: Event) -> None:
    thread = ASSEMBLER.open()
    run(thread.apply(numbered([before])))
    [seen] = run(thread.snapshot()).messages
    as_it_was = json.dumps(seen)
    run(thread.apply(numbered([artifact("delete", text="x", name="x"), artifact("append", text="new")], first=2)))
    assert data_of(run(thread.snapshot()).messages[0]) == [{"artifactId": "a", "text": "new"}]
    assert json.dumps(seen) == as_it_was


@pytest.mark.requirement("TA-89")
def test_halves_of_a_character_that_are_appended_become_the_character() -> None:
    log = [artifact("append", text="\ud83d"), artifact("append", text="\ude00")]
    assert what_is_there(*log) == [{"artifactId": "a", "text": "\U0001f600"}]


@pytest.mark.requirement("TA-89")
def test_delete_leaves_a_mark() -> None:
    assert what_is_there(artifact("create", name="n", text="t"), artifact("delete")) == [
        {"artifactId": "a", "deleted": True}
    ]


@pytest.mark.requirement("TA-39")
@pytest.mark.parametrize(
    "wrong",
    [
        artifact("create", 7),
        artifact("remove"),
        artifact(None),
        artifact(["create"]),
        artifact("append"),
        artifact("append", data=1),
        artifact("append", text="t", data=1),
        artifact("create", text=1),
        artifact("create", text="t", url="u"),
        artifact("create", name=1),
        native("artifact"),
    ],
)
def test_a_malformed_artifact_is_shown_like_a_part_of_an_unknown_kind(wrong: Event) -> None:
    [message] = assembled([artifact("create", text="t"), wrong])
    assert message["parts"][1:] == [{"type": "data-bubble-extension", "data": wrong["part"]}]


@pytest.mark.requirement("TA-97", "TA-31")
@pytest.mark.parametrize("op", ["create", "delete"])
def test_an_artifact_that_is_encoded_and_assembled_is_the_same(op: str) -> None:
    [message] = assembled([artifact("create", name="n", mediaType="text/plain", text="t"), artifact(op, text="t")])
    [event_part] = run(ASSEMBLER.encode(message))
    assert event_part.version == "bubble-v1"
    payload: Any = event_part.part
    [again] = assembled([native(**payload)])
    assert again["parts"] == message["parts"]


def test_the_extension_says_what_it_is_called() -> None:
    assert (EXTENSION.name, EXTENSION.version) == ("artifacts", 1)
    assert [handler.kind for handler in EXTENSION.part_handlers] == ["artifact"]


@pytest.mark.requirement("TA-29")
def test_another_part_is_none_of_the_artifacts() -> None:
    [handler] = EXTENSION.part_handlers
    assert handler.from_ui_part({"type": "text", "text": "t"}) is None
    assert handler.from_ui_part({"type": "data-bubble-artifact", "data": 7}) is None


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"artifactId": 7},
        {"artifactId": "a", "text": "t", "url": "u"},
        {"artifactId": 7, "deleted": True},
        {"artifactId": "a", "deleted": True, "text": "t"},
        {"artifactId": "a", "deleted": False},
        {"artifactId": "a", "text": "t", "more": 1},
    ],
)
def test_what_shows_no_artifact_is_not_sent_as_one(data: Any) -> None:  # noqa: ANN401 - wrong ones
    with pytest.raises(InvalidRequest, match=r"`\$\.parts\[0\]`.*`artifactId`"):
        run(ASSEMBLER.encode({"parts": [{"type": "data-bubble-artifact", "data": data}]}))


def test_an_artifact_of_another_id_than_its_part_is_not_sent() -> None:
    part = {"type": "data-bubble-artifact", "id": "b", "data": {"artifactId": "a", "text": "t"}}
    with pytest.raises(InvalidRequest, match="`id` of an artifact's part is its `artifactId`"):
        run(ASSEMBLER.encode({"parts": [part]}))
