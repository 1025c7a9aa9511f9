"""Event sourcing: accounts are nothing but their events; what they hold is worked out from the log.

    python examples/pipelines/event_sourcing.py

Events are appended and never changed. The balance of every account is a table that follows from them; it is
made a second time, by a program that has nothing but the log, and the same balances come out. The same
events, read another way, say what every account held at an earlier time.
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
#: Account, what happened, how much; one a second.
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
    """The account after an event. Closed accounts are gone."""
    match event["type"]:
        case "deposited":
            return {"balance": account["balance"] + event["amount"], "events": account["events"] + 1}
        case "withdrawn":
            return {"balance": account["balance"] - event["amount"], "events": account["events"] + 1}
        case "closed":
            return None
    raise ValueError(f"nobody knows what {event['type']} means")


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
    """Run the program until all events are in its table."""
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
    """The balances as they were then: the same events, read up to a time."""
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
        # What has happened happened once: events of an earlier run are still there.
        if create_topics(where.bootstrap_servers, "account-events"):
            send(where.bootstrap_servers, "account-events", records)
        print(f"balances:                       {balances(where, 'accounts')}")
        print(f"made again, from the log alone: {balances(where, 'accounts-again')}")
        print(f"after the third event:          {at(where, _START + 3000)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
