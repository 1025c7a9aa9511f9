"""When all rows up to a noted one are visible."""

from __future__ import annotations

from moldau.pipelines.connect.connectors.jdbc.source.commit_order import CommitOrder


def test_without_open_transactions_all_rows_are_visible() -> None:
    assert CommitOrder(10, "t").note({}, now=0)


def test_a_transaction_that_has_written_is_awaited_without_limit() -> None:
    order = CommitOrder(10, "t")
    assert not order.note({"a": True}, now=0)
    assert not order.check({"a": True, "b": True}, now=1000)
    # Those that began later do not matter.
    assert order.check({"b": True}, now=1001)


def test_a_transaction_without_writes_is_awaited_for_a_while_and_again_when_it_writes() -> None:
    order = CommitOrder(10, "t")
    assert not order.note({"report": False}, now=0)
    assert not order.check({"report": False}, now=9)
    assert order.check({"report": False}, now=10)
    assert order.note({"report": False}, now=11)
    assert not order.note({"report": True}, now=12)
    assert order.check({}, now=13)


def test_a_transaction_that_is_prepared_keeps_being_awaited() -> None:
    order = CommitOrder(10, "t")
    assert not order.note({"session": True}, now=0)
    assert not order.check({"prepared:x": True}, now=1)
    assert order.check({"prepared:y": True}, now=2) is False
    assert order.check({}, now=3)


def test_a_database_that_does_not_tell_is_read_at_once() -> None:
    assert CommitOrder(10, "t").note(None, now=0)
    assert not CommitOrder(None, "t").enabled
