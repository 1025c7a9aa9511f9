"""Diagnose why a client cannot connect, and say what to change.

A client connects to a bootstrap address first and then to the addresses that the brokers advertise. Most
problems are advertised addresses that the client cannot reach. The diagnosis tries both kinds from this
machine, layer by layer, and yields a finding for each step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum

from moldau.base.errors import KafkaError
from moldau.cli.moldau.doctor.probe import Probe, Reached, is_loopback, is_wildcard, probe
from moldau.client.wire.settings import Address, parse_addresses
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

TIMEOUT_MS = 5_000
USUAL_PORT = 9092


class Level(Enum):
    GOOD = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to change; every problem has some."""

    level: Level
    what: str
    advice: str | None = None


def diagnose(
    bootstrap: str, *, timeout_ms: int = TIMEOUT_MS, security_protocol: str = "PLAINTEXT"
) -> list[Finding]:
    """Return all findings about connecting to `bootstrap` from this machine."""

    async def collect() -> list[Finding]:
        return [finding async for finding in examine(bootstrap, timeout_ms, security_protocol)]

    return asyncio.run(collect())


async def examine(bootstrap: str, timeout_ms: int, security_protocol: str) -> AsyncIterator[Finding]:
    """Yield findings about the bootstrap addresses, then about the brokers of the cluster."""
    try:
        addresses = parse_addresses(bootstrap)
    except KafkaError as error:
        yield Finding(Level.PROBLEM, str(error), "Write host:port; Kafka's usual port is 9092.")
        return
    clusters: dict[str, tuple[Address, MetadataResponse]] = {}
    for address in addresses:
        found = await probe(address, timeout_ms)
        yield _check_bootstrap(found, security_protocol)
        async for finding in _bootstrap_notes(found, timeout_ms):
            yield finding
        if found.metadata is not None:
            clusters.setdefault(found.metadata.cluster_id or "", (address, found.metadata))
    if len(clusters) > 1:
        listed = ", ".join(f"{address} ({cluster})" for cluster, (address, _) in clusters.items())
        yield Finding(
            Level.PROBLEM,
            f"The bootstrap addresses lead to different clusters: {listed}.",
            "Name only brokers of one cluster.",
        )
    for address, metadata in clusters.values():
        async for finding in _check_cluster(address, metadata, timeout_ms):
            yield finding


def _check_bootstrap(found: Probe, security_protocol: str) -> Finding:
    if found.reached is Reached.KAFKA and security_protocol not in ("PLAINTEXT", ""):
        return Finding(
            Level.PROBLEM,
            f"{found.address} speaks PLAINTEXT, but the client is configured for {security_protocol}.",
            "Remove security.protocol from the client's settings, or use the port of the secured listener.",
        )
    if found.reached is Reached.KAFKA:
        return Finding(Level.GOOD, f"{found.address} ({', '.join(found.accepted)}) is a Kafka broker.")
    if found.reached is Reached.TLS and "SSL" in security_protocol:
        return Finding(Level.GOOD, f"{found.address} speaks TLS, like the client.")
    if found.reached is Reached.SASL and security_protocol == "SASL_PLAINTEXT":
        return Finding(Level.GOOD, f"{found.address} requires SASL, like the client.")
    return Finding(Level.PROBLEM, *explain(found))


def explain(found: Probe) -> tuple[str, str]:
    """Return what is wrong with an address where no broker answered, and what to do."""
    at, host = found.address, found.address.host
    explanations = {
        Reached.NAME_UNKNOWN: (
            f"The name {host} cannot be resolved on this machine ({found.detail}).",
            "Check the spelling. For a name that exists only inside Docker or Kubernetes, add a listener "
            "that advertises a name or address known here, or a line in /etc/hosts.",
        ),
        Reached.REFUSED: (
            f"Nothing listens at {at} ({', '.join(found.resolved)}): connection refused.",
            "Is the broker running (`moldau dev` starts one)? Is this the port in its `listeners`? In a "
            "container, is the port published?",
        ),
        Reached.TIMED_OUT: (
            f"{at} ({', '.join(found.resolved)}) does not answer.",
            "A firewall drops the packets, or the address is in a network that cannot be reached from here.",
        ),
        Reached.UNREACHABLE: (
            f"There is no route to {at} ({', '.join(found.resolved)}): {found.detail}.",
            "The address is in a network that cannot be reached from here. Use another address.",
        ),
        Reached.TLS: (
            f"{at} speaks TLS, but the client is configured for PLAINTEXT.",
            "Set security.protocol=SSL (SASL_SSL if it also requires SASL) in the client, or use the port "
            "of a PLAINTEXT listener.",
        ),
        Reached.SASL: (
            f"{at} requires SASL authentication ({', '.join(found.mechanisms)}).",
            "Set security.protocol=SASL_PLAINTEXT and sasl.mechanism in the client, or use the port of a "
            "PLAINTEXT listener.",
        ),
        Reached.CONTROLLER: (
            f"{at} is the listener of a controller; clients connect to brokers.",
            "Use the port of a listener that is not in controller.listener.names.",
        ),
        Reached.NOT_KAFKA: (
            f"{at} {found.detail}.",
            "Use the port of a Kafka listener; it is in the broker's `listeners`.",
        ),
        Reached.SILENT: (
            f"{at} accepts connections but does not answer Kafka requests: {found.detail}.",
            "Another program may use the port, the broker may still be starting, or it has reached "
            "max.connections. Check the broker's log.",
        ),
    }
    return explanations[found.reached]


async def _bootstrap_notes(found: Probe, timeout_ms: int) -> AsyncIterator[Finding]:
    """Yield notes about a bootstrap address: IP addresses that do not answer, a broker on the usual port."""
    if found.port_open and len(found.accepted) < len(found.resolved):
        closed = ", ".join(ip for ip in found.resolved if ip not in found.accepted)
        yield Finding(
            Level.NOTE,
            f"{found.address.host} also resolves to {closed}, where nothing listens: clients that try it "
            "first take longer to connect.",
            "Make the broker listen on all addresses of the name, or use an IP address.",
        )
    elsewhere = Address(found.address.host, USUAL_PORT)
    wrong_port = found.reached in (Reached.REFUSED, Reached.NOT_KAFKA) and elsewhere != found.address
    if wrong_port and (await probe(elsewhere, timeout_ms)).reached is Reached.KAFKA:
        yield Finding(Level.NOTE, f"There is a Kafka broker at {elsewhere}.", f"Did you mean {elsewhere}?")


async def _check_cluster(
    bootstrap: Address, metadata: MetadataResponse, timeout_ms: int
) -> AsyncIterator[Finding]:
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        yield await _check_broker(bootstrap, metadata, broker, timeout_ms)
    offline = [
        f"{topic.name}-{partition.partition_index}"
        for topic in metadata.topics
        for partition in topic.partitions
        if partition.leader_id < 0
    ]
    if offline:
        shown = ", ".join(offline[:5]) + (" and more" if len(offline) > 5 else "")
        yield Finding(
            Level.PROBLEM,
            f"{len(offline)} partitions have no leader and cannot be used: {shown}.",
            "Start the brokers that hold their replicas; `kafka-topics --describe --unavailable-partitions` "
            "lists them.",
        )


async def _check_broker(
    bootstrap: Address, metadata: MetadataResponse, broker: MetadataResponseBroker, timeout_ms: int
) -> Finding:
    advertised = Address(broker.host, broker.port)
    name = f"Broker {broker.node_id} advertises {advertised}"
    setting = f"advertised.listeners=PLAINTEXT://{bootstrap}"
    if is_wildcard(broker.host):
        return Finding(
            Level.PROBLEM,
            f"{name}, a wildcard that no client can connect to.",
            f"Set {setting} (a name or address that clients can resolve) on the broker.",
        )
    if is_loopback(broker.host) and not is_loopback(bootstrap.host):
        return Finding(
            Level.PROBLEM,
            f"{name}: every client will connect to its own machine, not to {bootstrap.host}.",
            f"Set {setting} on the broker.",
        )
    found = await probe(advertised, timeout_ms)
    if found.reached is not Reached.KAFKA:
        what, advice = explain(found)
        if found.reached in (Reached.NAME_UNKNOWN, Reached.REFUSED, Reached.TIMED_OUT, Reached.UNREACHABLE):
            advice = f"Set {setting} on the broker, or make {advertised} reachable from here."
        return Finding(Level.PROBLEM, f"{name}, where clients connect after {bootstrap}. {what}", advice)
    other = found.metadata.cluster_id if found.metadata is not None else None
    if other != metadata.cluster_id:
        return Finding(
            Level.PROBLEM,
            f"{name}, but another cluster answers there ({other} instead of {metadata.cluster_id}).",
            "Two brokers use the same address, or the name resolves to another machine here than on the "
            f"broker: set {setting} on it.",
        )
    if is_loopback(broker.host):
        return Finding(
            Level.GOOD,
            f"{name} and answers there. Clients on other machines and in containers cannot use that address.",
            "For those clients, set advertised.listeners to a name or address of this machine.",
        )
    return Finding(Level.GOOD, f"{name} and answers there.")
