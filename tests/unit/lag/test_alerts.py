"""Alerts over real sockets: order, retries, refusals and the bound of the queue."""

from __future__ import annotations

import asyncio

from moldau.base.backoff import Backoff
from moldau.lag.alerts import Webhook, alert_document
from moldau.lag.evaluation.rules import Status
from moldau.lag.evaluation.verdicts import GroupLag, LagSnapshot, PartitionLag
from moldau.lag.monitor import StatusChange, changes
from tests.harness.lag.webhook import Receiver

QUICK = Backoff(0.01, 0.02)


PARTITION = PartitionLag("orders", 0, Status.OK, True, 1.0, 3, 10, 0, 7, None, None, None)


def group(name: str, status: Status = Status.STOP, reason: str | None = "Because.") -> GroupLag:
    return GroupLag(name, "classic", "Empty", 0, status, 1.0, (PARTITION,), reason)


def change(name: str, after: Status = Status.STOP) -> StatusChange:
    return StatusChange(1000, "cluster-id", Status.OK, after, group(name, after))


def send(receiver: Receiver, *sent: StatusChange) -> Webhook:
    async def run() -> Webhook:
        webhook = Webhook(receiver.url, backoff=QUICK)
        for each in sent:
            webhook(each)
        await webhook.close()
        return webhook

    return asyncio.run(run())


def test_alerts_arrive_in_order() -> None:
    with Receiver() as receiver:
        webhook = send(receiver, change("a"), change("b"), change("a", Status.OK))
    assert [each["group"] for each in receiver.accepted] == ["a", "b", "a"]
    assert (webhook.sent, webhook.dropped) == (3, 0)


def test_a_failure_is_repeated_and_a_refusal_is_not() -> None:
    with Receiver([500, 429, 400]) as receiver:
        webhook = send(receiver, change("a"), change("b"))
    # The third answer refuses `a` for good.
    assert [each["group"] for each in receiver.refused] == ["a", "a", "a"]
    assert [each["group"] for each in receiver.accepted] == ["b"]
    assert (webhook.sent, webhook.dropped) == (1, 1)


def test_an_unreachable_webhook_is_given_up() -> None:
    with Receiver() as receiver:
        pass
    webhook = send(receiver, change("a"))
    assert (webhook.sent, webhook.dropped) == (0, 1)


def test_the_oldest_alerts_are_dropped_from_a_full_queue() -> None:
    async def run(receiver: Receiver) -> Webhook:
        webhook = Webhook(receiver.url, backoff=QUICK, most_waiting=2)
        for number in range(5):
            webhook(change(str(number)))
        await webhook.close()
        return webhook

    with Receiver() as receiver:
        webhook = asyncio.run(run(receiver))
    assert [each["group"] for each in receiver.accepted] == ["3", "4"]
    assert (webhook.sent, webhook.dropped) == (2, 3)


def test_the_body_says_what_changed() -> None:
    body = alert_document(change("billing"), "prod")
    assert body["text"] == "Group billing: OK -> STOP. Because."
    assert (body["cluster"], body["previous_status"], body["status"]) == ("prod", "OK", "STOP")
    gone = StatusChange(1000, None, Status.STOP, Status.NOTFOUND, group("billing"))
    assert alert_document(gone, None)["text"] == "Group billing: STOP -> NOTFOUND."


def test_changes_between_two_rounds() -> None:
    before = LagSnapshot(1, groups={"a": group("a", Status.OK), "b": group("b"), "c": group("c", Status.OK)})
    after = LagSnapshot(2, groups={"a": group("a"), "d": group("d"), "e": group("e", Status.OK)})
    found = [(each.lag.group, each.before.name, each.after.name) for each in changes(before, after)]
    assert found == [("a", "OK", "STOP"), ("d", "OK", "STOP"), ("b", "STOP", "NOTFOUND")]
