"""What an authorizer with 10,000 ACLs costs: a decision by itself, and producing compared with no authorizer.

Two nodes of the same software run at the same time, one with the standard authorizer and the ACLs; the
producer runs on them in turn. The median speeds and the CPU times of the undisturbed turns are compared; a
sum, because the kernel counts CPU time in steps of 10 ms, several percent of a single turn. The client is
allowed by a prefixed ACL, it is not a super user. `python -m benchmarks.authorizer` measures Moldau alone.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.brokers import Broker, Software, moldau
from benchmarks.clients import Librdkafka
from benchmarks.processes import cpu_seconds, undisturbed
from benchmarks.workloads import Figures
from moldau.client.admin.client import AdminClient, checked
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata import AccessControlEntryRecord
from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.security.acl.loading import STANDARD_AUTHORIZER
from moldau.security.acl.permissions import WRITE_TOPIC
from moldau.security.acl.standard import MAX_CACHED_DECISIONS, StandardAuthorizer
from moldau.security.principal import ANONYMOUS
from tests.harness.wire.requests import create_and_wait

ACLS = 10_000
_TURNS = 9
#: Decisions in a turn: several times as many as the authorizer caches.
_CALLS = 4 * MAX_CACHED_DECISIONS
#: What the tables call a workload, record size, number of records and settings of the producer.
_LOADS = (
    ("100 B", 100, 3_000_000, ()),
    ("1 KiB", 1024, 300_000, ()),
    ("one record a request", 100, 20_000, ("linger.ms=0", "batch.num.messages=1")),
)
#: Without ACLs on the cluster, everyone may create topics and ACLs; topics have ACLs.
_SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}


def cpu_name(load: str) -> str:
    return f"broker CPU with {ACLS:,} ACLs over none, produce {load}"


def speed_name(load: str) -> str:
    return f"records/s with {ACLS:,} ACLs over none, produce {load}"


def decision_name(kind: str, count: int) -> str:
    return f"{kind} decision among {count:,} ACLs, µs"


FIGURES = (
    *(name(load) for load, *_ in _LOADS for name in (speed_name, cpu_name)),
    *(decision_name(kind, count) for kind in ("cached", "new") for count in (10, ACLS)),
)


def bindings(count: int) -> Iterator[AclBinding]:
    """ACLs of 1,000 users on their own topics, prefixes and groups, and one that allows the client."""
    kinds = (
        (ResourceType.TOPIC, PatternType.LITERAL, AclOperation.WRITE),
        (ResourceType.TOPIC, PatternType.LITERAL, AclOperation.READ),
        (ResourceType.TOPIC, PatternType.PREFIXED, AclOperation.ALL),
        (ResourceType.GROUP, PatternType.LITERAL, AclOperation.READ),
    )
    for number in range(count - 1):
        resource_type, pattern_type, operation = kinds[number % len(kinds)]
        user, name = f"User:user-{number % 1000}", f"application-{number}"
        yield AclBinding(resource_type, name, pattern_type, user, "*", operation, PermissionType.ALLOW)
    client = (str(ANONYMOUS), "*", AclOperation.ALL, PermissionType.ALLOW)
    yield AclBinding(ResourceType.TOPIC, "bench-", PatternType.PREFIXED, *client)


# Decisions.


def decisions() -> Figures:
    """Return the microseconds of a decision that is cached, and of one that is not."""
    figures: Figures = {}
    for count in (10, ACLS):
        authorize = partial(_loaded(count).authorize, ANONYMOUS, "127.0.0.1", WRITE_TOPIC, api_key=0)
        figures[decision_name("cached", count)] = _microseconds(authorize, ["bench-0"] * _CALLS)
        names = [f"bench-{number}" for number in range(_CALLS)]
        figures[decision_name("new", count)] = _microseconds(authorize, names)
    return figures


def _loaded(count: int) -> StandardAuthorizer:
    logging.getLogger("kafka.authorizer.logger").setLevel(logging.INFO)
    authorizer = StandardAuthorizer()
    delta = MetadataDelta(MetadataImage.empty())
    for number, binding in enumerate(bindings(count)):
        delta.replay(AccessControlEntryRecord(id=number.to_bytes(16, "big"), **binding._asdict()))
    authorizer.apply(delta, delta.apply(0, 1))
    return authorizer


def _microseconds(authorize: Callable[[str], bool], names: list[str]) -> float:
    turns = []
    for _ in range(_TURNS):
        begin = time.perf_counter()
        for name in names:
            authorize(name)
        turns.append((time.perf_counter() - begin) / len(names) * 1e6)
    return statistics.median(turns)


# Producing.


def measure(software: Software, librdkafka: Librdkafka, share: float = 1.0) -> Figures:
    """Return the figures of one round on two new nodes."""
    with ExitStack() as stack:
        plain = stack.enter_context(Broker(software))
        authorized = stack.enter_context(Broker(software, settings=_SETTINGS))
        for broker in (plain, authorized):
            broker.first_start()
        _create_acls(authorized)
        figures: Figures = {}
        for load, size, count, settings in _LOADS:
            records = max(1000, int(count * share))
            figures |= _compare(librdkafka, (plain, authorized), load, size, records, settings)
        return figures


def _create_acls(broker: Broker) -> None:
    acls = list(bindings(ACLS))
    with AdminClient(broker.bootstrap) as admin:
        for first in range(0, ACLS, 1000):
            checked(admin.create_acls(acls[first : first + 1000]))


def _compare(
    librdkafka: Librdkafka,
    both: tuple[Broker, Broker],
    load: str,
    size: int,
    count: int,
    settings: tuple[str, ...],
) -> Figures:
    topic = "bench-" + load.replace(" ", "-")
    speeds: dict[Broker, list[float]] = {broker: [] for broker in both}
    costs: dict[Broker, list[float]] = {broker: [] for broker in both}
    for broker in both:
        create_and_wait(broker.bootstrap, topic)
        librdkafka.run("produce", broker.bootstrap, topic, count, size, ("acks=1", *settings))
    for turn in range(_TURNS):
        for broker in both if turn % 2 == 0 else reversed(both):
            before = cpu_seconds(broker.pid)
            outcome = librdkafka.run("produce", broker.bootstrap, topic, count, size, ("acks=1", *settings))
            costs[broker].append(cpu_seconds(broker.pid) - before)
            speeds[broker].append(outcome["records_per_s"])
    return {
        speed_name(load): _ratio(speeds, *both, statistics.median),
        cpu_name(load): _ratio(costs, *both, undisturbed),
    }


def _ratio(
    values: dict[Broker, list[float]],
    plain: Broker,
    authorized: Broker,
    summary: Callable[[list[float]], float],
) -> float:
    return summary(values[authorized]) / summary(values[plain])


if __name__ == "__main__":
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for figure, value in (decisions() | measure(moldau(), Librdkafka(), share)).items():
        print(f"{figure}: {value:.3g}")
