"""The checker finds a violation of each rule in a small history."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.chaos.checker import check
from tests.integration.chaos.history import History, Outcome, Transaction
from tests.integration.chaos.readers import Log

EXACTLY_ONCE = {"w", "t"}


def good() -> tuple[History, Log, Log]:
    """A writer, a plain one with a duplicate, a committed and an aborted transaction, a reader."""
    history = History()
    history.acknowledge("w", 0, 0, b"w/1")
    history.acknowledge("w", 0, None, b"w/2")
    history.acknowledge("plain", 1, 0, b"plain/1")
    history.transactions["t/t1"] = Transaction([(0, b"t/t1/1"), (1, b"t/t1/1")], Outcome.COMMITTED)
    history.transactions["t/t2"] = Transaction([(0, b"t/t2/2")], Outcome.ABORTED)
    history.transactions["t/t3"] = Transaction([(1, b"t/t3/2")], Outcome.UNKNOWN)
    everything: Log = {
        0: [(0, b"w/1"), (1, b"t/t1/1"), (2, b"w/2"), (4, b"t/t2/2")],
        1: [(0, b"plain/1"), (1, b"t/t1/1"), (2, b"plain/1"), (4, b"t/t3/2")],
    }
    committed: Log = {0: everything[0][:3], 1: everything[1][:3]}
    for offset, value in everything[0][:3]:
        history.see("reader", 0, offset, value)
    return history, everything, committed


def one_epoch(partition: int, offset: int) -> tuple[int, int]:
    return 7, 0


def test_a_correct_history_has_no_violation() -> None:
    assert check(*good(), EXACTLY_ONCE, one_epoch) == []


def acknowledged_and_gone(history: History, everything: Log, committed: Log) -> None:
    history.acknowledge("w", 1, 9, b"w/9")


def acknowledged_elsewhere(history: History, everything: Log, committed: Log) -> None:
    history.acknowledge("w", 0, 1, b"w/2")


def out_of_order(history: History, everything: Log, committed: Log) -> None:
    everything[0] = [(0, b"w/2"), (2, b"w/1")]
    committed[0] = [(1, b"t/t1/1")]
    history.acknowledged.clear()
    history.seen.clear()


def twice(history: History, everything: Log, committed: Log) -> None:
    everything[0].append((9, b"w/2"))


def half_a_transaction(history: History, everything: Log, committed: Log) -> None:
    committed[1].remove((1, b"t/t1/1"))


def committed_and_gone(history: History, everything: Log, committed: Log) -> None:
    history.seen.clear()
    committed[0].remove((1, b"t/t1/1"))
    committed[1].remove((1, b"t/t1/1"))


def aborted_and_visible(history: History, everything: Log, committed: Log) -> None:
    committed[0].append((4, b"t/t2/2"))


def read_and_changed(history: History, everything: Log, committed: Log) -> None:
    history.see("reader", 1, 0, b"other")


def read_backwards(history: History, everything: Log, committed: Log) -> None:
    history.see("reader", 0, 1, b"t/t1/1")


@pytest.mark.parametrize(
    ("breaking", "word"),
    [
        (acknowledged_and_gone, "LOST"),
        (acknowledged_elsewhere, "MOVED"),
        (out_of_order, "ORDER"),
        (twice, "DUPLICATE"),
        (half_a_transaction, "TORN"),
        (committed_and_gone, "LOST"),
        (aborted_and_visible, "ABORTED"),
        (read_and_changed, "CHANGED"),
        (read_backwards, "BACKWARDS"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_violated_rule_is_named(breaking: Callable[[History, Log, Log], None], word: str) -> None:
    history, everything, committed = good()
    breaking(history, everything, committed)
    [found] = check(history, everything, committed, EXACTLY_ONCE, one_epoch)
    assert found.startswith(f"{word}: ")


def test_a_record_resent_in_a_new_epoch_is_no_duplicate() -> None:
    history, everything, committed = good()
    twice(history, everything, committed)
    assert (
        check(history, everything, committed, EXACTLY_ONCE, lambda partition, offset: (7, offset // 9)) == []
    )


def test_client_errors_are_reported_first() -> None:
    history, everything, committed = good()
    history.violation("it hangs")
    history.acknowledge("w", 1, 9, b"w/9")
    found = check(history, everything, committed, EXACTLY_ONCE, one_epoch)
    assert found[0].endswith("it hangs") and len(found) == 2
