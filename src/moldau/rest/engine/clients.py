"""The Kafka clients of a user: an admin client, a producer, and the properties of consumers.

Without propagation, all requests share the clients of the proxy. With
`confluent.rest.auth.propagate.method=SASL`, each user has clients that log in with the credentials of the
requests: user and password with PLAIN or SCRAM, a bearer token with OAUTHBEARER, as `client.sasl.mechanism`
says. They are bounded in number, and closed after a time without requests or if Kafka refuses the login.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AsyncAdminClient
from moldau.http.asgi import Header
from moldau.http.authentication.credentials import BASIC, BEARER, Credentials
from moldau.http.errors import ApiError
from moldau.rest.errors import KAFKA_AUTHENTICATION
from moldau.rest.settings import RestSettings
from moldau.security.sasl.mechanism import OAUTHBEARER
from moldau.security.sasl.oauthbearer.settings import LOGIN_MODULE, TOKEN_OPTION
from moldau.security.sasl.oauthbearer.token import (
    InvalidToken,
    read_object,
    sections,
    text_claim,
    time_claim,
)
from moldau.security.sasl.plain import LOGIN_MODULE as PLAIN_MODULE
from moldau.security.sasl.scram import LOGIN_MODULE as SCRAM_MODULE

if TYPE_CHECKING:
    from moldau.rest.engine.producer import OutgoingRecord, Result, SharedProducer

#: How long a topic is known to exist before the broker is asked again, and how many are remembered.
_KNOWN_TOPIC_S: Final = 60.0
_MAX_KNOWN_TOPICS: Final = 10_000
_CREATION_S: Final = 3.0


class Clients:
    """Clients are created when first used."""

    def __init__(
        self,
        settings: RestSettings,
        login: Mapping[str, str] | None = None,
        owner: Credentials | None = None,
    ) -> None:
        self._settings = settings
        #: Whose clients they are; None: all users'.
        self.owner = owner
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
        if not self.is_known(topic):
            await self._check_topic(topic)
        return await self._current_producer().begin(topic, records)

    def is_known(self, topic: str) -> bool:
        """Return whether a topic existed a moment ago."""
        return self._known_topics.get(topic, 0.0) >= asyncio.get_running_loop().time()

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
        if len(self._known_topics) >= _MAX_KNOWN_TOPICS:
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
        #: Without propagation, of all users.
        self._shared = None if settings.propagate else Clients(settings)
        self._propagated: dict[Credentials, Clients] = {}

    async def connect(self) -> None:
        """Reach the cluster with the login of the proxy, if it has one; `KafkaError` if that fails."""
        if self._shared is not None:
            await self._shared.cluster_id()

    async def of(self, credentials: Credentials | None) -> Clients:
        """Return the clients for a request; `ApiError` 401 without the credentials to propagate."""
        if self._shared is not None:
            return self._shared
        scheme = BEARER if self._mechanism == OAUTHBEARER else BASIC
        if credentials is None or credentials.scheme != scheme or not _is_complete(credentials):
            message = f"{scheme.capitalize()} credentials are required."
            raise ApiError(401, KAFKA_AUTHENTICATION, message, self._challenge)
        clients = self._propagated.get(credentials)
        if clients is None:
            self._make_room()
            clients = Clients(self._settings, self._login(credentials), credentials)
            self._propagated[credentials] = clients
        return clients

    def refused(self, clients: Clients) -> tuple[Header, ...]:
        """Drop the clients of a user whose login Kafka has refused; return the headers of the answer."""
        if clients.owner is not None and self._propagated.get(clients.owner) is clients:
            self._close_later(clients.owner)
        return self._challenge if self._settings.propagate else ()

    @property
    def _mechanism(self) -> str:
        return str(self._settings.admin.get("sasl.mechanism", "PLAIN"))

    @property
    def _challenge(self) -> tuple[Header, ...]:
        challenge = b"Bearer" if self._mechanism == OAUTHBEARER else b'Basic realm="kafka"'
        return ((b"www-authenticate", challenge),)

    def _login(self, credentials: Credentials) -> dict[str, str]:
        """Return the properties of a login: a JAAS entry with the credentials."""
        secret = _quoted(credentials.secret)
        if credentials.scheme == BEARER:
            entry = f"{LOGIN_MODULE} required {TOKEN_OPTION}={secret};"
        else:
            module = PLAIN_MODULE if self._mechanism == "PLAIN" else SCRAM_MODULE
            entry = f"{module} required username={_quoted(credentials.user)} password={secret};"
        return {"sasl.mechanism": self._mechanism, "sasl.jaas.config": entry}

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
        everyone = [*self._propagated.values(), *([] if self._shared is None else [self._shared])]
        await asyncio.gather(*(each.close() for each in everyone))


_CLOSING: set[asyncio.Future[None]] = set()


def _is_complete(credentials: Credentials) -> bool:
    """Return whether there is a user, or a token of the form that the client of Kafka can read."""
    if credentials.scheme == BASIC:
        return bool(credentials.user)
    try:
        claims = read_object(sections(credentials.secret)[1])
        text_claim(claims, "sub")
        return time_claim(claims, "exp", required=True) is not None
    except InvalidToken:
        return False


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
