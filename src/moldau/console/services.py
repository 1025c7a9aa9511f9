"""The services beside a cluster: schema registry, Connect and pipelines, if they are configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.registry import AsyncRegistryClient
from moldau.console.records.decoding import Decoder
from moldau.console.records.masking import Masking
from moldau.console.settings import ServiceSettings
from moldau.console.sql import SqlRuns
from moldau.console.web.places import Places

if TYPE_CHECKING:
    import httpx2

_TIMEOUT_S = 15.0
#: What reads whole topics of a cluster at a time, and how long others wait for it.
_MAX_SEARCHES = 4
_MAX_EXPORTS = 4
_MAX_FOLLOWS = 200
_WAIT_S = 30.0
#: A page does not wait long for a registry that is away.
_IMPATIENT = {"schema.registry.max.retries": "1", "schema.registry.retries.wait.ms": "200"}


class ConnectError(KafkaError):
    """An error answer of Connect, or no answer (`status` 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.status = status


class ConnectClient:
    """The REST API of Connect workers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client: httpx2.AsyncClient | None = None

    async def __call__(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """Send a request and return the parsed answer; `ConnectError` if it is refused."""
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(base_url=self.url, timeout=_TIMEOUT_S, trust_env=False)
        try:
            answer = await self._client.request(method, path, json=body, params=query)
        except httpx2.HTTPError as error:
            raise ConnectError(
                0, f"Connect at {self.url} does not answer: {error or type(error).__name__}"
            ) from None
        try:
            value = answer.json() if answer.content else None
        except ValueError:
            value = None
        if answer.is_error:
            message = value.get("message") if isinstance(value, dict) else None
            raise ConnectError(
                answer.status_code, str(message or f"Connect answered with status {answer.status_code}.")
            )
        return value

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


class Services:
    """The services of one cluster; SQL is the same for all."""

    def __init__(self, settings: ServiceSettings, masking: Masking, sql: SqlRuns | None) -> None:
        registry = settings.registry
        self.registry = None if registry is None else AsyncRegistryClient({**_IMPATIENT, **registry})
        self.registry_url = None if registry is None else registry["schema.registry.url"]
        self.decoder = Decoder(self.registry, masking)
        self.sql = sql
        self.connect = None if settings.connect_url is None else ConnectClient(settings.connect_url)
        self.pipelines_folder = settings.pipelines_folder
        # Each takes memory for what it reads, and a part of the cluster's bandwidth.
        self.searches = Places(_MAX_SEARCHES, "searches", _WAIT_S)
        self.exports = Places(_MAX_EXPORTS, "exports", _WAIT_S)
        self.follows = Places(_MAX_FOLLOWS, "live tables", 0.0)

    async def close(self) -> None:
        if self.registry is not None:
            await self.registry.close()
        if self.connect is not None:
            await self.connect.close()
