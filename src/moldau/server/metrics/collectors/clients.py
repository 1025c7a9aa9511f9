"""Connections of clients, decisions about them, and their quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from moldau.metrics.catalog import requests, security
from moldau.metrics.exposition import Scrape
from moldau.network.limits import ConnectionLimits
from moldau.quotas.client_quotas import ClientQuotas
from moldau.security.acl.authorizer import Authorizer
from moldau.security.acl.standard import StandardAuthorizer

#: A node has one network processor, its event loop.
_PROCESSOR = "0"
#: Names and versions of client software that have their own samples.
_MAX_SOFTWARE = 100


def collect_connections(scrape: Scrape, limits: Iterable[ConnectionLimits], listeners: Iterable[str]) -> None:
    names = list(listeners)
    open_now, created = Counter[str](dict.fromkeys(names, 0)), Counter[str](dict.fromkeys(names, 0))
    software, unsent = Counter[tuple[str, str, str]](), 0
    for each in limits:
        unsent += each.unsent_bytes()
        created.update(each.served)
        for connection, listener in each.open.items():
            open_now[listener] += 1
            software[*connection.client_software, listener] += 1
    for listener, count in open_now.items():
        scrape.add(requests.CONNECTIONS, count, listener, _PROCESSOR)
        scrape.add(requests.CONNECTIONS_CREATED, created[listener], listener, _PROCESSOR)
        scrape.add(requests.CONNECTIONS_CLOSED, created[listener] - count, listener, _PROCESSOR)
    for (name, version, listener), count in software.most_common(_MAX_SOFTWARE):
        scrape.add(requests.CLIENT_SOFTWARE, count, name, version, listener, _PROCESSOR)
    scrape.add(requests.UNSENT_BYTES, unsent)


def collect_security(scrape: Scrape, authorizer: Authorizer | None, quotas: ClientQuotas) -> None:
    if isinstance(authorizer, StandardAuthorizer):
        scrape.add(security.DECISIONS, authorizer.allowed, "allowed")
        scrape.add(security.DECISIONS, authorizer.denied, "denied")
        scrape.add(security.ACLS, len(authorizer))
    else:
        scrape.add(security.DECISIONS, 0, "allowed")
        scrape.add(security.DECISIONS, 0, "denied")
    for sensors in (quotas.produce.sensors, quotas.fetch.sensors, quotas.request.sensors):
        scrape.add(security.QUOTA_CLIENTS, len(sensors), sensors.key)
    mutations = quotas.mutations.sensors
    scrape.add(security.QUOTA_CLIENTS, len(mutations), mutations.key)
