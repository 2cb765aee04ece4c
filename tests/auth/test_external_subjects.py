"""PrincipalIds of external subjects: valid, readable, and never two alike."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubble.auth.external_subjects import MAX_SUBJECT, is_subject, principal_id_of
from bubble.protocol.identifiers import is_name

SUBJECTS = st.text(min_size=1, max_size=MAX_SUBJECT).filter(is_subject)
#: Subs made of the pieces that an escape is made of.
TRICKY = st.lists(st.sampled_from([".", "2e", "2E", ".2e", "h-", ".h-", ":", "é", "a", "%", "00"]), min_size=1).map(
    "".join
)


def subject_of(principal_id: str) -> str:
    """Reads an id back; what was hashed cannot be."""
    _, _, escaped = principal_id.partition(":")
    return re.sub(rb"\.([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), escaped.encode()).decode()


@pytest.mark.requirement("PR-4-17")
@pytest.mark.parametrize(
    ("subject", "principal_id"),
    [
        ("ann", "corp:ann"),
        ("Ann_B-1@x:y", "corp:Ann_B-1@x:y"),
        ("ann.lee", "corp:ann.2elee"),
        ("a|b", "corp:a.7cb"),
        ("google-oauth2|1 2", "corp:google-oauth2.7c1.202"),
        ("é", "corp:.c3.a9"),
        ("system:bubble", "corp:system:bubble"),
        ("../admin", "corp:.2e.2e.2fadmin"),
    ],
)
def test_other_characters_are_written_as_hex(subject: str, principal_id: str) -> None:
    assert principal_id_of("corp", subject) == principal_id


@pytest.mark.requirement("PR-4-17")
@given(subject=SUBJECTS | TRICKY.filter(is_subject))
def test_every_subject_has_a_valid_id_that_can_be_read_back_unless_it_is_hashed(subject: str) -> None:
    principal_id = principal_id_of("corp", subject)
    assert is_name(principal_id)
    if ":.h-" in principal_id[4:8]:
        assert len(principal_id) == len("corp:.h-") + 64
    else:
        assert subject_of(principal_id) == subject


@pytest.mark.requirement("PR-4-17")
@given(subjects=st.lists(SUBJECTS | TRICKY.filter(is_subject), min_size=2, max_size=8, unique=True))
def test_no_two_subjects_share_an_id(subjects: list[str]) -> None:
    ids = [principal_id_of("corp", subject) for subject in subjects]
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("PR-4-17")
def test_no_escape_can_be_imitated_by_a_subject() -> None:
    subjects = [
        ".",
        ".2e",
        "2e",
        ".2E",
        "a.62",
        "ab",
        "a.b",
        "\u00e9",
        "e\u0301",
        "c3a9",
        ".c3.a9",
        "h-",
        ".h-",
        "Ann",
        "ann",
        ".h-" + "0" * 64,
        "x" * 200,
        "x" * 201,
        principal_id_of("corp", "x" * 200).removeprefix("corp:"),
    ]
    ids = {subject: principal_id_of("corp", subject) for subject in subjects}
    for one, other in combinations(subjects, 2):
        assert ids[one] != ids[other], (one, other)


def test_a_subject_is_hashed_from_the_first_character_that_does_not_fit() -> None:
    longest = "x" * (128 - len("corp:"))
    assert principal_id_of("corp", longest) == f"corp:{longest}"
    assert principal_id_of("corp", longest + "x").startswith("corp:.h-")


@pytest.mark.parametrize(
    "value", [None, 7, True, "", ["ann"], {"ann": 1}, "a" * 256, "a\nb", "\x00", "\x7f", "\x85", "\udfff"]
)
def test_what_can_name_nobody_is_no_subject(value: object) -> None:
    assert not is_subject(value)
