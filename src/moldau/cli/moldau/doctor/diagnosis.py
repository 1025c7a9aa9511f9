"""Diagnose why a client cannot connect, and say what to change.

A client connects to a bootstrap address first and then to the addresses that the brokers advertise. Most
problems are advertised addresses that the client cannot reach. The diagnosis tries both kinds from this
machine, layer by layer, and yields a finding for each step.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from moldau.base.errors import KafkaError
from moldau.cli.moldau.doctor.certificates import describe
from moldau.cli.moldau.doctor.explanations import certificate_of, explain
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.cli.moldau.doctor.permissions import Checked, check_permissions
from moldau.cli.moldau.doctor.probe import Probe, Reached, is_loopback, is_wildcard, probe
from moldau.client.wire.security import SecuritySettings
from moldau.client.wire.settings import Address, parse_addresses
from moldau.network.connector import PLAINTEXT, Connector
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

TIMEOUT_MS = 5_000
USUAL_PORT = 9092
_IS_KAFKA = (Reached.KAFKA, Reached.OTHER_PROTOCOL)


@dataclass(frozen=True, slots=True)
class Client:
    """The client whose connections are diagnosed."""

    security: SecuritySettings
    connector: Connector
    timeout_ms: int

    async def probe(self, address: Address) -> Probe:
        return await probe(address, self.connector, self.timeout_ms)


def diagnose(
    bootstrap: str,
    *,
    timeout_ms: int = TIMEOUT_MS,
    properties: Mapping[str, str] | None = None,
    checked: Sequence[Checked] = (),
) -> list[Finding]:
    """Return all findings about connecting to `bootstrap` from this machine with a client's properties."""

    async def collect() -> list[Finding]:
        return [finding async for finding in examine(bootstrap, timeout_ms, properties or {}, checked)]

    return asyncio.run(collect())


async def examine(
    bootstrap: str, timeout_ms: int, properties: Mapping[str, str], checked: Sequence[Checked]
) -> AsyncIterator[Finding]:
    """Yield findings about the bootstrap addresses, the brokers of the cluster, and the permissions."""
    try:
        security = SecuritySettings.from_properties(properties)
    except KafkaError as error:
        yield Finding(
            Level.PROBLEM,
            f"The settings of the client cannot be used: {error}",
            "Correct them in the properties file.",
        )
        return
    try:
        addresses = parse_addresses(bootstrap, protocol=security.protocol)
    except KafkaError as error:
        yield Finding(Level.PROBLEM, str(error), "Write host:port; Kafka's usual port is 9092.")
        return
    client = Client(security, security.connector(), timeout_ms)
    async for finding in _examine_addresses(addresses, client, checked):
        yield finding


async def _examine_addresses(
    addresses: Sequence[Address], client: Client, checked: Sequence[Checked]
) -> AsyncIterator[Finding]:
    clusters: dict[str, tuple[Address, MetadataResponse]] = {}
    for address in addresses:
        found = await client.probe(address)
        for finding in _check_bootstrap(found, client.security):
            yield finding
        async for finding in _bootstrap_notes(found, client.timeout_ms):
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
        async for finding in _check_cluster(address, metadata, client):
            yield finding
        async for finding in check_permissions(address, client.security, client.timeout_ms, checked):
            yield finding


def _check_bootstrap(found: Probe, security: SecuritySettings) -> list[Finding]:
    """Return a finding for each step that a client takes at a bootstrap address."""
    if found.reached is not Reached.KAFKA:
        return [explain(found, security.mechanism)]
    findings = []
    certificate = certificate_of(found)
    if certificate is not None:
        findings.append(describe(certificate, found.address))
    if security.sasl:
        findings.append(Finding(Level.GOOD, f"{found.address} accepts the login with {security.mechanism}."))
    served = f"{found.address} ({', '.join(found.accepted)}) is a Kafka broker"
    secured = "." if security.protocol == "PLAINTEXT" else f", reached with {security.protocol}."
    return [*findings, Finding(Level.GOOD, served + secured)]


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
    if wrong_port and (await probe(elsewhere, PLAINTEXT, timeout_ms)).reached in _IS_KAFKA:
        yield Finding(Level.NOTE, f"There is a Kafka broker at {elsewhere}.", f"Did you mean {elsewhere}?")


async def _check_cluster(
    bootstrap: Address, metadata: MetadataResponse, client: Client
) -> AsyncIterator[Finding]:
    for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id):
        yield await _check_broker(bootstrap, metadata, broker, client)
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
    bootstrap: Address, metadata: MetadataResponse, broker: MetadataResponseBroker, client: Client
) -> Finding:
    advertised = Address(broker.host, broker.port)
    name = f"Broker {broker.node_id} advertises {advertised}"
    setting = f"advertised.listeners={client.security.protocol}://{bootstrap}"
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
    found = await client.probe(advertised)
    if found.reached is not Reached.KAFKA:
        problem = explain(found, client.security.mechanism)
        what, advice = problem.what, problem.advice
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
