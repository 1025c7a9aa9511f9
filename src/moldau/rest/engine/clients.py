"""The Kafka clients of a user: an admin client, a producer, and the properties of consumers.

Without propagation, all requests share the clients of the proxy. With
`confluent.rest.auth.propagate.method=SASL`, each user has clients that log in with the credentials of the
requests (PLAIN or SCRAM, as `client.sasl.mechanism` says). They are bounded in number, and closed after a
time without requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AsyncAdminClient
from moldau.http.authentication.credentials import BASIC, Credentials
from moldau.http.errors import ApiError
from moldau.rest.errors import KAFKA_AUTHENTICATION
from moldau.rest.settings import RestSettings

if TYPE_CHECKING:
    from moldau.rest.engine.producer import OutgoingRecord, Result, SharedProducer

#: How long a topic is known to exist before the broker is asked again, and how many are remembered.
_KNOWN_TOPIC_S: Final = 60.0
_MOST_KNOWN_TOPICS: Final = 10_000
_CREATION_S: Final = 3.0
_CHALLENGE: Final = ((b"www-authenticate", b'Basic realm="kafka"'),)


class Clients:
    """Clients are created when first used."""

    def __init__(self, settings: RestSettings, login: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._login = dict(login or {})
        self.admin = AsyncAdminClient({**settings.admin, **self._login})
        self._producer: SharedProducer | None = None
        self._known_topics: dict[str, float] = {}
        self._cluster_id: str | None = None
        #: Requests that use the clients now, and the end of the last one.
        self.users = 0
        self.last_used = 0.0

    async def cluster_id(self) -> str:
        if self._cluster_id is None:
            self._cluster_id = (await self.admin.describe_cluster()).cluster_id
        return self._cluster_id

    async def send(self, topic: str, records: list[OutgoingRecord]) -> list[Result]:
        """Produce records; `KafkaError` if the topic does not exist and is not created automatically."""
        return await (await self.begin(topic, records))

    async def begin(self, topic: str, records: list[OutgoingRecord]) -> asyncio.Future[list[Result]]:
        """Send records, and return what becomes of them later."""
        if self._known_topics.get(topic, 0.0) < asyncio.get_running_loop().time():
            await self._check_topic(topic)
        return await self._current_producer().begin(topic, records)

    async def _check_topic(self, topic: str) -> None:
        found = (await self.admin.describe_topics([topic]))[topic]
        if isinstance(found, KafkaError):
            if found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise found
            # A broker that does not create topics gives the same answer as one that is creating it.
            try:
                async with asyncio.timeout(_CREATION_S):
                    exists = await self.admin.ensure_topic(topic)
            except TimeoutError:
                exists = False
            if not exists:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if len(self._known_topics) >= _MOST_KNOWN_TOPICS:
            self._known_topics.clear()
        self._known_topics[topic] = asyncio.get_running_loop().time() + _KNOWN_TOPIC_S

    def forget_topic(self, topic: str) -> None:
        self._known_topics.pop(topic, None)

    def _current_producer(self) -> SharedProducer:
        if self._producer is None or self._producer.broken:
            from moldau.rest.engine.producer import SharedProducer

            properties = {**self._settings.producer, **self._login}
            self._producer = SharedProducer(properties, self._settings.max_block_ms)
        return self._producer

    def consumer_properties(self) -> dict[str, Any]:
        return {**self._settings.consumer, **self._login}

    async def close(self) -> None:
        await self.admin.close()
        if self._producer is not None:
            await self._producer.close()


class ClientPool:
    """The clients of all users."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._shared = Clients(settings)
        self._propagated: dict[Credentials, Clients] = {}

    @property
    def shared(self) -> Clients:
        return self._shared

    async def of(self, credentials: Credentials | None) -> Clients:
        """Return the clients for a request; `ApiError` 401 without the credentials to propagate."""
        if not self._settings.propagate:
            return self._shared
        if credentials is None or credentials.scheme != BASIC or not credentials.user:
            raise ApiError(401, KAFKA_AUTHENTICATION, "Basic credentials are required.", _CHALLENGE)
        clients = self._propagated.get(credentials)
        if clients is None:
            self._make_room()
            clients = self._propagated[credentials] = Clients(self._settings, self._login(credentials))
        return clients

    def _login(self, credentials: Credentials) -> dict[str, str]:
        """Return the properties of a login: a JAAS entry with the credentials."""
        mechanism = str(self._settings.admin.get("sasl.mechanism", "PLAIN"))
        module = (
            "org.apache.kafka.common.security.plain.PlainLoginModule"
            if mechanism == "PLAIN"
            else "org.apache.kafka.common.security.scram.ScramLoginModule"
        )
        user, password = _quoted(credentials.user), _quoted(credentials.secret)
        return {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{module} required username={user} password={password};",
        }

    def _make_room(self) -> None:
        if len(self._propagated) < self._settings.max_propagated:
            return
        idle = [(each.last_used, key) for key, each in self._propagated.items() if not each.users]
        if not idle:
            raise ApiError(503, 50301, "Too many users at the same time; retry later.")
        _, oldest = min(idle, key=lambda item: item[0])
        self._close_later(oldest)

    def expire(self) -> None:
        """Close the clients of users without recent requests."""
        limit = asyncio.get_running_loop().time() - self._settings.propagated_timeout_ms / 1000
        for key, clients in list(self._propagated.items()):
            if not clients.users and clients.last_used < limit:
                self._close_later(key)

    def _close_later(self, key: Credentials) -> None:
        clients = self._propagated.pop(key)
        task = asyncio.ensure_future(clients.close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    async def close(self) -> None:
        await asyncio.gather(self._shared.close(), *(each.close() for each in self._propagated.values()))


_CLOSING: set[asyncio.Future[None]] = set()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
