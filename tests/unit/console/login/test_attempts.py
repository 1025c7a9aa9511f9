"""The back-off for failed logins."""

from __future__ import annotations

from moldau.base.clock import ManualClock
from moldau.console.login import attempts
from moldau.console.login.attempts import Attempts


def test_a_user_at_an_address_waits_longer_with_each_failure() -> None:
    clock = ManualClock()
    tried = Attempts(clock)
    waits = []
    for _ in range(12):
        tried.failed("alice", "a")
        waits.append(tried.wait_s("alice", "a"))
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert tried.wait_s("bob", "a") == tried.wait_s("alice", "b") == 0
    clock.advance(60_000)
    assert tried.wait_s("alice", "a") == 0


def test_a_login_forgets_the_failures_of_the_user_at_the_address() -> None:
    tried = Attempts(ManualClock())
    for _ in range(4):
        tried.failed("alice", "a")
    tried.succeeded("alice", "a")
    tried.failed("alice", "a")
    assert tried.wait_s("alice", "a") == 0


def test_failures_are_forgotten_after_a_while() -> None:
    clock = ManualClock()
    tried = Attempts(clock)
    for _ in range(6):
        tried.failed("alice", "a")
    clock.advance(901_000)
    tried.failed("alice", "a")
    assert tried.wait_s("alice", "a") == 0


def test_many_users_of_an_address_and_many_addresses_of_a_user_wait_briefly() -> None:
    tried = Attempts(ManualClock())
    for number in range(40):
        tried.failed(f"user-{number}", "a")
        tried.failed("alice", f"address-{number}")
    assert tried.wait_s("another", "a") == 10
    assert tried.wait_s("alice", "another") == 10
    assert tried.wait_s("another", "another") == 0


def test_attempts_without_a_result_count_as_failures() -> None:
    tried = Attempts(ManualClock())
    tried.failed("alice", "a")
    with tried.pending("alice", "a"), tried.pending("alice", "a"):
        assert tried.wait_s("alice", "a", beside_pending=True) == 0
        with tried.pending("alice", "a"):
            assert tried.wait_s("alice", "a", beside_pending=True) == 1
            assert tried.wait_s("alice", "a") == 0
            assert tried.wait_s("alice", "b", beside_pending=True) == 0
    assert tried.wait_s("alice", "a") == 0
    assert not tried._pending


def test_the_table_is_bounded() -> None:
    tried = Attempts(ManualClock())
    for number in range(attempts._MAX_ENTRIES):
        tried.failed(f"user-{number}", f"address-{number}")
    assert len(tried._failures) == attempts._MAX_ENTRIES
