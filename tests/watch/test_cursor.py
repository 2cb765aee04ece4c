"""The cursor: to the byte what the browser's own encoder would write, and strict when it comes back."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol.sse import encode_sse
from bubble.watch import WatchCursor, WatchDecoder, WatchError
from bubble.watch.wire import MAX_GENERATION, MAX_UINT64

CURSOR = WatchCursor(bot_id="b", session_id="", generation=0, after_updated_seq=22)
TEXT = '{"botId":"b","sessionId":"","generation":0,"afterUpdatedSeq":"22"}'

STRINGIFY = """
const values = JSON.parse(require("fs").readFileSync(0, "utf8"));
const cursor = ([botId, sessionId, generation, afterUpdatedSeq]) =>
  Buffer.from(JSON.stringify({ botId, sessionId, generation, afterUpdatedSeq })).toString("base64url");
process.stdout.write(JSON.stringify(values.map(cursor)));
"""


def packed(text: str | bytes) -> str:
    return base64.urlsafe_b64encode(text.encode() if isinstance(text, str) else text).decode().rstrip("=")


@pytest.mark.requirement("WA-30", "WA-64")
def test_a_cursor_is_base64url_of_compact_json_in_the_order_of_its_keys() -> None:
    assert CURSOR.encode() == packed(TEXT)
    assert "=" not in CURSOR.encode()


IDS = st.text(st.characters(codec=None, categories=None), max_size=12)


@pytest.mark.requirement("WA-30", "WA-64")
@given(IDS.filter(bool), IDS, st.integers(0, MAX_GENERATION), st.integers(0, MAX_UINT64))
def test_encoding_and_decoding_are_inverse(bot: str, session: str, generation: int, after: int) -> None:
    cursor = WatchCursor(bot_id=bot, session_id=session, generation=generation, after_updated_seq=after)
    again = WatchCursor.decode(cursor.encode())
    assert again.encode() == cursor.encode()
    assert (again.generation, again.after_updated_seq) == (generation, after)
    if bot.isascii() and session.isascii():
        assert again == cursor


@pytest.mark.requirement("WA-64")
@pytest.mark.skipif(shutil.which("node") is None, reason="missing: node")
def test_the_bytes_are_those_of_json_stringify() -> None:
    hard = ["plain", "é😀", '"\\/', "\u2028\u2029\x7f\x85", "\x00\x01\x1f\b\f\n\r\t", "\ud83d", "\ude00x", "a\ud800b"]
    values = [(name, name, 7, "22") for name in hard] + [("b", "", MAX_GENERATION, str(MAX_UINT64))]
    asked = json.dumps(values)
    answered = subprocess.run(["node", "-e", STRINGIFY], input=asked, capture_output=True, text=True, check=True)
    ours = [
        WatchCursor(bot_id=bot, session_id=session, generation=generation, after_updated_seq=int(after)).encode()
        for bot, session, generation, after in values
    ]
    assert ours == json.loads(answered.stdout)


HARD = WatchCursor(bot_id="?é~", session_id="\U000fffff", generation=0, after_updated_seq=0)
HARD_TEXT = '{"botId":"?é~","sessionId":"\U000fffff","generation":0,"afterUpdatedSeq":"0"}'


@pytest.mark.requirement("WA-64")
@pytest.mark.parametrize("session", ["1", "12", "123"])
def test_a_cursor_has_no_padding_but_comes_back_with_it_or_without(session: str) -> None:
    text = WatchCursor(bot_id="b", session_id=session, generation=0, after_updated_seq=0).encode()
    right = "=" * (-len(text) % 4)
    assert "=" not in text
    assert WatchCursor.decode(text) == WatchCursor.decode(text + right)
    assert WatchCursor.decode(text).session_id == session
    for wrong in {"=", "==", "===", "===="} - {right}:
        assert_refused(text + wrong)


@pytest.mark.requirement("WA-25", "WA-64")
def test_the_longest_cursor_has_room_for_its_padding() -> None:
    name = "b" * next(size for size in range(2_000) if WatchCursor.longest(bot_id="b" * size, session_id="") == 2_047)
    text = WatchCursor(bot_id=name, session_id="", generation=MAX_GENERATION, after_updated_seq=MAX_UINT64).encode()
    assert WatchCursor.decode(text + "=").bot_id == name


@pytest.mark.requirement("WA-64")
@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(":", ": "),
        TEXT.replace(",", ", "),
        f" {TEXT}",
        f"{TEXT}\n",
        f"\ufeff{TEXT}",
        f"{TEXT}\0",
        f"{TEXT}{{}}",
        '{"sessionId":"","botId":"b","generation":0,"afterUpdatedSeq":"22"}',
        TEXT.replace('"b"', '"\\u0062"'),
        TEXT.replace("botId", "bot\\u0049d"),
        TEXT.replace('""', '"\\/"'),
        TEXT.replace('""', '"/"').replace("/", "\\/"),
        TEXT.replace('""', '"\\ud83d\\ude00"'),
        TEXT.replace('""', '"\\uD83D"'),
        TEXT.replace(":0", ":-0"),
        TEXT.replace(":0", ":0e0"),
        TEXT.replace(":0", ":00"),
    ],
)
def test_what_says_the_same_in_other_letters_is_no_cursor(text: str) -> None:
    assert WatchCursor.decode(packed(TEXT)) == CURSOR
    assert_refused(packed(text))


@pytest.mark.requirement("WA-64")
def test_only_one_alphabet_and_nothing_between_its_letters_makes_a_cursor() -> None:
    text = HARD.encode()
    assert WatchCursor.decode(text) == HARD
    assert {"-", "_"} <= set(text)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for other in (
        text.replace("-", "+"),
        text.replace("_", "/"),
        f"{text[:9]}\n{text[9:]}",
        f"{text[:9]} {text[9:]}",
        f"{text[:9]}!{text[9:]}",
        f"{text[:8]}={text[8:]}",
        f"{text}A",
        f"{text}AAAA",
        *(text[:-1] + letter for letter in last if letter != text[-1]),
    ):
        assert_refused(other)


@pytest.mark.requirement("WA-64")
@given(st.data())
def test_whatever_is_decoded_is_what_would_be_encoded(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([CURSOR.encode(), HARD.encode(), packed(HARD_TEXT)]))
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(st.text("AQgw-_+/= \n", max_size=3)) + text[data.draw(st.integers(at, len(text))) :]
    try:
        cursor = WatchCursor.decode(changed)
    except WatchError:
        return
    assert changed in (cursor.encode(), cursor.encode() + "=" * (-len(cursor.encode()) % 4))


def assert_refused(text: str) -> None:
    with pytest.raises(WatchError) as refused:
        WatchCursor.decode(text)
    assert refused.value.code == "invalid_cursor"
    assert refused.value.message.startswith("This is no cursor that a watch gave: ")
    assert refused.value.message.endswith(". Resume with the id of an event, as it came.")


def altered(**members: object) -> str:
    return packed(json.dumps({**json.loads(TEXT), **members}, separators=(",", ":")))


@pytest.mark.requirement("WA-63", "WA-64")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "!",
        "a b",
        "é",
        packed(TEXT) + "\n",
        packed(TEXT) + "===",
        packed(TEXT).replace("e", "+", 1),
        "A",
        "AB",  # the last character has bits that no byte gets
        packed(b"\xff\xfe"),
        packed("null"),
        packed("[]"),
        packed("{}"),
        packed(TEXT[:-1]),
        packed(TEXT.replace('"botId":"b",', "")),
        packed(TEXT.replace('"b"', '"b","botId":"b"')),
        packed("[" * 5_00 + "]" * 5_00),
        altered(more=1),
        altered(botId=""),
        altered(botId=1),
        altered(botId=None),
        altered(sessionId=None),
        altered(generation="0"),
        altered(generation=True),
        altered(generation=1.0),
        altered(generation=-1),
        altered(generation=MAX_GENERATION + 1),
        altered(afterUpdatedSeq=22),
        altered(afterUpdatedSeq=""),
        altered(afterUpdatedSeq="022"),
        altered(afterUpdatedSeq="-1"),
        altered(afterUpdatedSeq="1.0"),
        altered(afterUpdatedSeq="٢"),
        altered(afterUpdatedSeq=str(MAX_UINT64 + 1)),
        altered(botId="x" * 2_000),
    ],
)
def test_what_no_encoder_wrote_is_refused(text: str) -> None:
    assert_refused(text)


@pytest.mark.requirement("WA-31", "WA-63")
@pytest.mark.parametrize(("bot", "session"), [("other", ""), ("b", "other")])
def test_a_cursor_is_for_its_own_bot_and_session(bot: str, session: str) -> None:
    with pytest.raises(WatchError) as refused:
        WatchDecoder(bot_id=bot, session_id=session, cursor=CURSOR)
    assert refused.value.code == "invalid_cursor"


@pytest.mark.requirement("WA-25")
def test_ids_that_no_cursor_could_carry_are_refused_before_anything_begins() -> None:
    WatchDecoder(bot_id="b" * 700, session_id="s" * 700)
    with pytest.raises(ValueError, match="no longer than a cursor"):
        WatchDecoder(bot_id="b" * 1_000, session_id="s" * 1_000)
    with pytest.raises(ValueError, match="must not be empty"):
        WatchDecoder(bot_id="")


@pytest.mark.requirement("WA-23", "WA-25")
def test_a_record_refuses_a_name_or_an_id_that_would_break_it() -> None:
    for name in ("Message", "", "a" * 62, "a\nb"):
        with pytest.raises(ValueError, match="cannot name"):
            encode_sse(name, {})
    for id_ in ("a\rb", "a\nb", "a\0b", "x" * 2_049):
        with pytest.raises(ValueError, match="an id has"):
            encode_sse("message", {}, id=id_)
