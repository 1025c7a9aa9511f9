"""Traffic of topics: sums survive the topics."""

from __future__ import annotations

from moldau.replication.traffic import Traffic


def test_the_total_includes_topics_that_left() -> None:
    traffic = Traffic()
    first = traffic.add_replica("a")
    assert traffic.add_replica("a") is first
    first.messages_in += 5
    traffic.add_replica("b").messages_in += 2
    traffic.remove_replica("a")
    assert [name for name, _ in traffic] == ["a", "b"]
    traffic.remove_replica("a")
    assert [name for name, _ in traffic] == ["b"]
    assert traffic.total().messages_in == 7
    assert traffic.add_replica("a").messages_in == 0


def test_requests_for_unknown_topics_count_in_the_total_only() -> None:
    traffic = Traffic()
    traffic.produce_failed("unknown", 3, 10)
    traffic.fetch_failed("unknown", 3)
    total = traffic.total()
    assert (total.failed_produce_requests, total.failed_fetch_requests, total.bytes_rejected) == (1, 1, 10)
    assert len(traffic) == 0
    assert (traffic.produce_failures, traffic.fetch_failures) == ({3: 1}, {3: 1})
