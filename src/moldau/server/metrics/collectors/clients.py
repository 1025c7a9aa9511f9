"""Connections of clients, decisions about them, and their quotas."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from moldau.config.listeners import Endpoint
from moldau.metrics.catalog import requests, security
from moldau.metrics.exposition import Scrape
from moldau.metrics.family import Family
from moldau.network.limits import ConnectionLimits
from moldau.quotas.client_quotas import ClientQuotas, RateQuota
from moldau.quotas.limits import QuotaClient
from moldau.security.acl.authorizer import Authorizer
from moldau.security.acl.standard import StandardAuthorizer
from moldau.server.authentication.login_counts import LoginCounts, LoginOutcome
from moldau.server.metrics.loop import RateSampler
from moldau.server.metrics.slices import ScrapeSlice

#: A node has one network processor, its event loop.
_PROCESSOR = "0"
#: Names and versions of client software that have their own samples.
_MAX_SOFTWARE = 100
#: Clients with a quota that have their own samples.
_MAX_QUOTA_CLIENTS = 200
#: The rate of each counter.
_RATES = {
    requests.CONNECTIONS_CREATED: requests.CONNECTION_CREATION_RATE,
    requests.CONNECTIONS_CLOSED: requests.CONNECTION_CLOSE_RATE,
    **requests.LOGIN_RATES,
}


def collect_connections(scrape: Scrape, limits: Iterable[ConnectionLimits], listeners: Iterable[str]) -> None:
    names = list(listeners)
    open_now, created = Counter[str](dict.fromkeys(names, 0)), Counter[str](dict.fromkeys(names, 0))
    software, encrypted, unsent = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]](), 0
    for each in limits:
        unsent += each.unsent_bytes()
        created.update(each.served)
        for connection, listener in each.open.items():
            open_now[listener] += 1
            software[*connection.client_software, listener] += 1
            session = connection.ssl_object
            if session is not None and (cipher := session.cipher()) is not None:
                encrypted[cipher[0], session.version() or "", listener] += 1
    for listener, count in open_now.items():
        scrape.add(requests.CONNECTIONS, count, listener, _PROCESSOR)
        scrape.add(requests.CONNECTIONS_CREATED, created[listener], listener, _PROCESSOR)
        scrape.add(requests.CONNECTIONS_CLOSED, created[listener] - count, listener, _PROCESSOR)
    for (name, version, listener), count in software.most_common(_MAX_SOFTWARE):
        scrape.add(requests.CLIENT_SOFTWARE, count, name, version, listener, _PROCESSOR)
    for (cipher_suite, version, listener), count in encrypted.items():
        scrape.add(requests.TLS_CONNECTIONS, count, cipher_suite, version, listener, _PROCESSOR)
    scrape.add(requests.UNSENT_BYTES, unsent)


class ConnectionRates:
    """Connections and logins of listeners, and their rates."""

    def __init__(
        self,
        logins: LoginCounts,
        limits: Iterable[ConnectionLimits],
        listeners: Callable[[], Iterable[Endpoint]],
        now: Callable[[], float],
    ) -> None:
        """`listeners` returns those of the present configuration, `now` monotonic seconds."""
        self._logins = logins
        self._limits = tuple(limits)
        self._listeners = listeners
        self._samplers = defaultdict[tuple[Family, str], RateSampler](lambda: RateSampler(now))

    def sample(self) -> None:
        """Record the present counts; those of the last scrape may be minutes old."""
        for (family, listener), value in self._counts().items():
            self._samplers[family, listener].sample(value)

    def collect(self, scrape: Scrape) -> None:
        for (family, listener), value in self._counts().items():
            if family in requests.LOGIN_RATES:
                scrape.add(family, value, listener, _PROCESSOR)
            per_second = self._samplers[family, listener].per_second(value)
            scrape.add(_RATES[family], per_second, listener, _PROCESSOR)
        get = self._logins.get
        for name in dict.fromkeys(each.name for each in self._listeners()):
            scrape.add(requests.EXPIRED_CONNECTIONS, get(name, LoginOutcome.EXPIRED), name, _PROCESSOR)
            scrape.add(requests.TLS_HANDSHAKES, get(name, LoginOutcome.SECURED), name, "successful")
            scrape.add(requests.TLS_HANDSHAKES, get(name, LoginOutcome.HANDSHAKE_FAILED), name, "failed")

    def _counts(self) -> dict[tuple[Family, str], int]:
        """Return the counters that have a rate, by family and listener."""
        created, open_now = Counter[str](), Counter[str]()
        for each in self._limits:
            created.update(each.served)
            open_now.update(each.open.values())
        get, found = self._logins.get, dict[tuple[Family, str], int]()
        for name, protocol, *_ in self._listeners():
            found[requests.CONNECTIONS_CREATED, name] = created[name]
            found[requests.CONNECTIONS_CLOSED, name] = created[name] - open_now[name]
            with_sasl = protocol.startswith("SASL_")
            successful = LoginOutcome.SUCCESSFUL if with_sasl else LoginOutcome.SECURED
            failed = get(name, LoginOutcome.FAILED, LoginOutcome.HANDSHAKE_FAILED)
            found[requests.SUCCESSFUL_LOGINS, name] = get(name, successful)
            found[requests.FAILED_LOGINS, name] = failed
            found[requests.SUCCESSFUL_RELOGINS, name] = get(name, LoginOutcome.REAUTHENTICATED)
            found[requests.FAILED_RELOGINS, name] = get(name, LoginOutcome.REAUTHENTICATION_FAILED)
        return found


async def collect_security(
    scrape: Scrape, turn: ScrapeSlice, authorizer: Authorizer | None, quotas: ClientQuotas, now_ms: int
) -> None:
    if isinstance(authorizer, StandardAuthorizer):
        scrape.add(security.DECISIONS, authorizer.allowed, "allowed")
        scrape.add(security.DECISIONS, authorizer.denied, "denied")
        scrape.add(security.ACLS, len(authorizer))
    else:
        scrape.add(security.DECISIONS, 0, "allowed")
        scrape.add(security.DECISIONS, 0, "denied")
    for quota in (quotas.produce, quotas.fetch, quotas.request):
        scrape.add(security.QUOTA_CLIENTS, len(quota.sensors), quota.sensors.key)
        await _collect_quota(scrape, turn, quota, now_ms)
    mutations = quotas.mutations.sensors
    scrape.add(security.QUOTA_CLIENTS, len(mutations), mutations.key)


async def _collect_quota(scrape: Scrape, turn: ScrapeSlice, quota: RateQuota, now_ms: int) -> None:
    """Add the figures of the clients that use most of their quota."""
    key, throttled = quota.sensors.key, 0
    # Share of the quota, client, rate and throttle time; the least share first.
    busiest: list[tuple[float, QuotaClient, float, int]] = []
    for client, sensor in quota.sensors:
        used = sensor.used.rate(now_ms)
        throttle_ms = sensor.used.throttle_ms(sensor.limit, now_ms)
        throttled += throttle_ms > 0
        heappush(busiest, (used / sensor.limit, client, used, throttle_ms))
        if len(busiest) > _MAX_QUOTA_CLIENTS:
            heappop(busiest)
        await turn.pause()
    scrape.add(security.THROTTLED_CLIENTS, throttled, key)
    figures = security.QUOTA_FIGURES[key]
    for _, client, used, throttle_ms in sorted(busiest, reverse=True):
        scrape.add(figures.rate, used, figures.resource, *client)
        scrape.add(security.THROTTLE_TIME, throttle_ms, figures.resource, *client)
        scrape.add(figures.rate_by_name, used, *client)
        scrape.add(figures.throttle_time_by_name, throttle_ms, *client)
        await turn.pause()
