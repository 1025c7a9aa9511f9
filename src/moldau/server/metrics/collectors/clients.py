"""Connections of clients, decisions about them, and their quotas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from heapq import nlargest

from moldau.config.listeners import Endpoint
from moldau.metrics.catalog import requests, security
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family
from moldau.network.limits import ConnectionLimits
from moldau.quotas.client_quotas import ClientQuotas
from moldau.security.acl.authorizer import Authorizer
from moldau.security.acl.standard import StandardAuthorizer
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome
from moldau.server.metrics.loop import RateSampler

#: A node has one network processor, its event loop.
_PROCESSOR = "0"
#: Names and versions of client software that have their own samples.
_MAX_SOFTWARE = 100
#: Clients with a quota that have their own samples.
_MAX_QUOTA_CLIENTS = 200


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


class ConnectionRates:
    """Connections and logins of listeners, and their rates."""

    def __init__(self, logins: LoginCounts) -> None:
        self._logins = logins
        self._samplers: defaultdict[tuple[Family, str], RateSampler] = defaultdict(RateSampler)
        self._values: dict[tuple[Family, str], int] = {}

    def sample(self) -> None:
        for key, value in self._values.items():
            self._samplers[key].sample(value)

    def collect(
        self, scrape: Scrape, limits: Iterable[ConnectionLimits], listeners: Iterable[Endpoint]
    ) -> None:
        created, open_now = Counter[str](), Counter[str]()
        for each in limits:
            created.update(each.served)
            open_now.update(each.open.values())
        for name, protocol in {(each.name, each.protocol) for each in listeners}:
            closed = created[name] - open_now[name]
            self._rate(scrape, requests.CONNECTION_CREATION_RATE, name, created[name])
            self._rate(scrape, requests.CONNECTION_CLOSE_RATE, name, closed)
            self._collect_logins(scrape, name, with_sasl=protocol.startswith("SASL_"))

    def _collect_logins(self, scrape: Scrape, name: str, *, with_sasl: bool) -> None:
        get = self._logins.get
        successful = LoginOutcome.SUCCESSFUL if with_sasl else LoginOutcome.SECURED
        for family, value in (
            (requests.SUCCESSFUL_LOGINS, get(name, successful)),
            (requests.FAILED_LOGINS, get(name, LoginOutcome.FAILED, LoginOutcome.HANDSHAKE_FAILED)),
            (requests.SUCCESSFUL_RELOGINS, get(name, LoginOutcome.REAUTHENTICATED)),
            (requests.FAILED_RELOGINS, get(name, LoginOutcome.REAUTHENTICATION_FAILED)),
        ):
            scrape.add(family, value, name, _PROCESSOR)
            self._rate(scrape, requests.LOGIN_RATES[family], name, value)
        scrape.add(requests.EXPIRED_CONNECTIONS, get(name, LoginOutcome.EXPIRED), name, _PROCESSOR)
        scrape.add(requests.TLS_HANDSHAKES, get(name, LoginOutcome.SECURED), name, "successful")
        scrape.add(requests.TLS_HANDSHAKES, get(name, LoginOutcome.HANDSHAKE_FAILED), name, "failed")

    def _rate(self, scrape: Scrape, family: Family, listener: str, value: int) -> None:
        key = family, listener
        self._values[key] = value
        scrape.add(family, self._samplers[key].per_second(value), listener, _PROCESSOR)


def collect_security(
    scrape: Scrape, authorizer: Authorizer | None, quotas: ClientQuotas, now_ms: int
) -> None:
    if isinstance(authorizer, StandardAuthorizer):
        scrape.add(security.DECISIONS, authorizer.allowed, "allowed")
        scrape.add(security.DECISIONS, authorizer.denied, "denied")
        scrape.add(security.ACLS, len(authorizer))
    else:
        scrape.add(security.DECISIONS, 0, "allowed")
        scrape.add(security.DECISIONS, 0, "denied")
    for sensors in (quotas.produce.sensors, quotas.fetch.sensors, quotas.request.sensors):
        scrape.add(security.QUOTA_CLIENTS, len(sensors), sensors.key)
    _collect_quotas(scrape, quotas, now_ms)
    mutations = quotas.mutations.sensors
    scrape.add(security.QUOTA_CLIENTS, len(mutations), mutations.key)


def _collect_quotas(scrape: Scrape, quotas: ClientQuotas, now_ms: int) -> None:
    """Add the figures of the clients that use most of their quota."""
    for quota in (quotas.produce, quotas.fetch, quotas.request):
        rate, throttle = security.QUOTA_FIGURES[quota.sensors.key]
        found = [
            (sensor.used.rate(now_ms), sensor.used.throttle_ms(sensor.limit, now_ms), sensor.limit, client)
            for client, sensor in quota.sensors
        ]
        scrape.add(security.THROTTLED_CLIENTS, sum(each[1] > 0 for each in found), quota.sensors.key)
        for used, throttle_ms, _, client in nlargest(
            _MAX_QUOTA_CLIENTS, found, lambda each: each[0] / each[2]
        ):
            scrape.add(rate, used, *client)
            scrape.add(throttle, throttle_ms, *client)
