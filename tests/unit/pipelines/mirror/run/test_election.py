"""Which member mirrors a flow."""

from __future__ import annotations

from moldau.pipelines.mirror.run.election import active_member

WAITING, ACTIVE = b'{"active": false}', b'{"active": true}'


def test_the_active_member_stays_active() -> None:
    assert active_member({"a": WAITING, "b": ACTIVE, "c": WAITING}) == "b"


def test_without_an_active_member_all_would_name_the_same() -> None:
    assert active_member({"b": WAITING, "a": WAITING}) == "a"


def test_one_of_two_active_members_is_named() -> None:
    assert active_member({"b": ACTIVE, "c": ACTIVE, "a": WAITING}) == "b"


def test_metadata_that_cannot_be_read_is_that_of_a_member_that_waits() -> None:
    assert active_member({"a": b"?", "b": b"[]", "c": ACTIVE, "d": b""}) == "c"
