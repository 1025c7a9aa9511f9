"""The text of docs/COMPATIBILITY.md.

The served APIs are those that a node announces; the rest is in `tables` and `suites`. A test compares the
page with the file, so it cannot become outdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.protocol.apis import APIS, Api
from moldau.server.dispatch.apis import served_apis
from moldau.server.dispatch.context import ServedApi
from moldau.server.settings import BROKER, CONTROLLER
from tools.compatibility import suites
from tools.compatibility.tables import DIFFERENCES, NOT_SERVED

_INTRODUCTION = """\
# Compatibility

Moldau implements the protocol of Apache Kafka 4.3. This page lists the APIs and versions that it serves, the
clients it is tested with, the APIs that it does not serve yet, and every known difference.
`python -m tools.compatibility` generates it from the table that the node itself uses, and a test keeps it
current. `kafka-broker-api-versions` shows the APIs of a running node.
"""

_CLIENTS = """\
## Clients and tools

Each runs unchanged against a node, of which it knows only the address.

| client | tested by |
|---|---|
| confluent-kafka (librdkafka) | `make test` |
| kafka-python | `make test` |
| aiokafka | `make test` |
| kcat | `make test`, if it is installed |
| Kafka's Java client, 3.9 and 4.x | `make interop` |
| Kafka's Java tools | `make interop` |
| Kafka Streams in both group protocols, at-least-once and exactly-once | `make interop` |
| franz-go | `make interop` |

The tests cover:

- producing: all codecs, idempotence, transactions (`transaction.version` 0 to 2) with group offsets
- consuming: assigned partitions; classic groups (eager, cooperative, static members); consumer groups (both
  assignors, regular expressions); migration between the two protocols in both directions
- streams groups: internal topics, standby tasks, killed instances and brokers, assignments as in Apache
  Kafka; like Kafka 4.3, Moldau refuses static members (`group.instance.id`), warm-up tasks, regular
  expressions for source topics and another topology of an existing group with INVALID_REQUEST
- offsets: committed, earliest, latest and by timestamp
- topics and configurations
"""


def document() -> str:
    """Return the page."""
    parts = [_INTRODUCTION, *_served(), _CLIENTS, *suites.section(), *_not_served(), *_differences()]
    return "\n".join(parts)


def unexplained() -> list[Api]:
    """Return the APIs that are neither served nor listed in `NOT_SERVED`; there must be none."""
    served = {*served_apis(BROKER, telemetry=True), *served_apis(CONTROLLER)}
    known = {key for reason in NOT_SERVED for key in reason.keys} | served
    return [api for key, api in APIS.items() if key not in known]


def _served() -> Iterator[str]:
    yield "## APIs served to clients\n"
    yield _table(served_apis(BROKER, telemetry=True).values())
    yield (
        "Produce is announced from version 0, as in Apache Kafka, because librdkafka compresses only then;\n"
        "versions 0 to 2 are rejected. GetTelemetrySubscriptions and PushTelemetry are served if\n"
        "`metrics.port` is set; Apache Kafka serves them if a receiver of client metrics is configured.\n"
    )
    yield "## APIs served on controller listeners\n"
    yield _table(served_apis(CONTROLLER).values())


def _table(apis: Iterable[ServedApi]) -> str:
    rows = ["| key | API | versions | note |", "|---:|---|---|---|"]
    for served in sorted(apis, key=lambda each: each.api.key):
        api = served.api
        note = f"{api.max_version} is unstable in 4.3 and not served" if api.latest_unstable else ""
        rows.append(
            f"| {api.key} | {api.name} | {_versions(served.min_version, served.max_version)} | {note} |"
        )
    return "\n".join(rows) + "\n"


def _versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _not_served() -> Iterator[str]:
    if not NOT_SERVED:
        return
    yield "## APIs not served yet\n\nThey are not announced, so clients do not use them.\n"
    rows = ["| APIs | reason |", "|---|---|"]
    for reason in NOT_SERVED:
        names = ", ".join(f"{APIS[key].name} ({key})" for key in sorted(reason.keys))
        rows.append(f"| {names} | {reason.why} |")
    yield "\n".join(rows) + "\n"


def _differences() -> Iterator[str]:
    yield "## Known differences from Apache Kafka 4.3\n"
    yield "Any other difference is a bug; please report it.\n"
    for area, differences in DIFFERENCES.items():
        lines = [f"### {area}\n", *(f"- {each.what} *{each.why}*" for each in differences)]
        yield "\n".join(lines) + "\n"
