"""Names, run ids, tool call ids, keys and seqs at their bounds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.protocol import identifiers
from bubble.protocol.errors import InvalidRequest

GOOD_NAMES = ["a", "9", "A", "a.b_c:d@e-f", "alice@example.org", "x" * 128, "oidc:3f.2e", "system:bubble"]
BAD_NAMES = [
    *("", "x" * 129, ".a", "_a", ":a", "@a", "-a", "a b", "a/b", "a\n", "\na", "a\x00", "é", "a\u0301", "a~b", "a%2e"),
    *("a\u200b", "ａ", "x" * 100_000, "a\ud800"),
]


@pytest.mark.requirement("PR-2-01")
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_name_is_taken(name: str) -> None:
    assert identifiers.is_name(name)
    assert identifiers.check_name(name, path="threadId") == name
    assert re.search(identifiers.NAME_PATTERN, name)


@pytest.mark.requirement("PR-2-01", "PR-3-13")
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:20]))
def test_what_is_no_name_is_refused_by_path(name: str) -> None:
    assert not identifiers.is_name(name)
    with pytest.raises(InvalidRequest, match="`threadId`"):
        identifiers.check_name(name, path="threadId")


@pytest.mark.requirement("PR-2-03", "PR-2-04")
@pytest.mark.parametrize("check", [identifiers.check_run_id, identifiers.check_tool_call_id])
def test_run_ids_and_tool_call_ids_have_1_to_256_characters_none_of_them_control(check: object) -> None:
    assert callable(check)
    for text in ("r", "x" * 256, "a b/c?&=%", "é世\U0001f600" * 85, " "):
        assert check(text, path="p") == text
    for text in ("", "x" * 257, "\U0001f600" * 257, *(f"a{chr(code)}b" for code in [*range(32), *range(127, 160)])):
        with pytest.raises(InvalidRequest, match="`p`"):
            check(text, path="p")


@pytest.mark.requirement("PR-2-04")
def test_only_a_tool_call_id_may_have_a_tilde() -> None:
    assert identifiers.check_tool_call_id("a~b", path="p") == "a~b"
    with pytest.raises(InvalidRequest, match="`p`"):
        identifiers.check_run_id("a~b", path="p")


@given(text=st.text(max_size=300))
def test_the_published_patterns_say_what_the_checks_do(text: str) -> None:
    # In a JSON schema `$` is the very end; in Python's `re` that is `\Z`.
    for pattern, check in (
        (identifiers.NAME_PATTERN, identifiers.check_name),
        (identifiers.RUN_ID_PATTERN, identifiers.check_run_id),
        (identifiers.TOOL_CALL_ID_PATTERN, identifiers.check_tool_call_id),
    ):
        try:
            taken = check(text, path="p") == text
        except InvalidRequest:
            taken = False
        assert taken == bool(re.search(pattern.removesuffix("$") + r"\Z", text))


@pytest.mark.requirement("PR-6-47", "PR-8-10")
def test_a_key_has_1_to_128_characters() -> None:
    for key in ("k", "k" * 128):
        assert identifiers.check_key(key, path="Idempotency-Key") == key
    for key in ("", "k" * 129):
        with pytest.raises(InvalidRequest, match="`Idempotency-Key`"):
            identifiers.check_key(key, path="Idempotency-Key")


@pytest.mark.requirement("PR-2-14")
def test_a_seq_goes_from_1_to_2_to_the_53rd_less_1() -> None:
    for seq in (1, 2**53 - 1):
        assert identifiers.check_seq(seq, path="fromSeq") == seq
    for seq in (0, -1, 2**53, 2**64):
        with pytest.raises(InvalidRequest, match="`fromSeq`"):
            identifiers.check_seq(seq, path="fromSeq")
    assert identifiers.check_seq(0, path="$.seq", lowest=0) == 0


@pytest.mark.requirement("PR-5-13")
def test_a_new_id_is_128_random_bits_and_a_name() -> None:
    ids = {identifiers.new_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(identifiers.is_name(one) and len(bytes.fromhex(one)) == 16 for one in ids)
