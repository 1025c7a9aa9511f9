"""Event sourcing: the balances of accounts are derived from a log of events.

    python examples/pipelines/event_sourcing.py

Events are appended and never changed. The balances are a table computed from the events; a second application
computes the same table from the log alone. A batch query of the same events returns the balances at an
earlier time.
"""

from __future__ import annotations

import sys
from typing import Any

from common import Place, create_topics, parser, place, send, some_hours_ago, wait_for

from moldau import pipelines
from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    KafkaStreams,
    Materialized,
    Serdes,
    StreamsBuilder,
    Topology,
)

Event = dict[str, Any]
_START = some_hours_ago()
#: Account, type and amount; one event per second.
EVENTS = (
    ("alice", "deposited", 100),
    ("bob", "deposited", 50),
    ("alice", "withdrawn", 30),
    ("bob", "withdrawn", 50),
    ("carol", "deposited", 10),
    ("bob", "closed", 0),
    ("alice", "deposited", 5),
)
BALANCES = {"alice": 75, "carol": 10}


def changed(_: str, event: Event, account: Event) -> Event | None:
    """Return the account after an event; None for a closed account."""
    match event["type"]:
        case "deposited":
            return {"balance": account["balance"] + event["amount"], "events": account["events"] + 1}
        case "withdrawn":
            return {"balance": account["balance"] - event["amount"], "events": account["events"] + 1}
        case "closed":
            return None
    raise ValueError(f"unknown event type {event['type']}")


def topology() -> Topology:
    builder = StreamsBuilder()
    events = builder.stream("account-events", Consumed.with_("string", "json"))
    events.group_by_key(Grouped.with_("string", "json")).aggregate(
        lambda: {"balance": 0, "events": 0},
        changed,
        materialized=Materialized(Serdes.string(), Serdes.json(), "accounts"),
    )
    return builder.build()


def balances(where: Place, application: str) -> dict[str, int]:
    """Run the application until its table contains all events."""
    config = {
        "application.id": application,
        "bootstrap.servers": where.bootstrap_servers,
        "state.dir": str(where.folder / application),
    }
    with KafkaStreams(topology(), config) as streams:
        store = streams.store("accounts")

        def seen() -> dict[str, int]:
            return {account: state["balance"] for account, state in store.all()}

        wait_for("all events", lambda: streams.exception or seen() == BALANCES)
        if streams.exception is not None:
            raise streams.exception
        return seen()


def at(where: Place, time_ms: int) -> dict[str, int]:
    """Return the balances at a time, from the events before it."""
    spark = pipelines.session("event-sourcing")
    events = pipelines.read_topic(
        spark, where.bootstrap_servers, "account-events", {"endingTimestamp": str(time_ms)}
    )
    found: dict[str, int] = {}
    for row in events.orderBy("timestamp").collect():
        account, event = row["key"].decode(), Serdes.json().deserialize("", row["value"])
        amount = event["amount"] if event["type"] == "deposited" else -event["amount"]
        found[account] = found.get(account, 0) + amount
    return found


def main() -> int:
    with place(parser(__doc__).parse_args()) as where:
        records = (
            (account, {"type": kind, "amount": amount}, _START + 1000 * number)
            for number, (account, kind, amount) in enumerate(EVENTS)
        )
        # The events of an earlier run are still in the topic.
        if create_topics(where.bootstrap_servers, "account-events"):
            send(where.bootstrap_servers, "account-events", records)
        print(f"balances:                       {balances(where, 'accounts')}")
        print(f"rebuilt from the log alone:     {balances(where, 'accounts-again')}")
        print(f"after the third event:          {at(where, _START + 3000)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
