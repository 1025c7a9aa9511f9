"""The receiver of client telemetry (KIP-714): what a broker with metrics does with pushed metrics.

The handlers ask for a client's subscriptions and pass its pushes on. A payload is decompressed, at most to
`telemetry.max.bytes`, and decoded in the pool; its points appear at `/metrics` with the labels `client_id`
and `client_instance_id`. A series is forgotten after three intervals without a push.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, Randomness, Uuid, format_uuid, random_uuid
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.config.client_metrics import CLIENT_METRICS_CONFIGS, parse_match_patterns
from moldau.metadata.image import MetadataImage, ResourceType
from moldau.metrics.telemetry.otlp import Point, decode
from moldau.metrics.telemetry.protobuf import MalformedMessage
from moldau.metrics.telemetry.series import ClientSeries
from moldau.metrics.telemetry.subscriptions import ClientInstance, ClientSubscriptions, Subscription
from moldau.network.connection import Connection
from moldau.protocol.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD, decompress
from moldau.protocol.errors import CorruptBatch, DecompressionBomb
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings

if TYPE_CHECKING:
    from moldau.server.metrics.forwarding import OtlpForwarder

logger = logging.getLogger(__name__)

#: In the order in which clients should prefer them.
ACCEPTED_COMPRESSION: Final = (ZSTD, LZ4, GZIP, SNAPPY)


class ClientTelemetry:
    def __init__(
        self,
        metadata: MetadataPublisher,
        settings: NodeSettings,
        pool: Pool,
        randomness: Randomness,
        clock: Clock,
        forwarder: OtlpForwarder | None = None,
    ) -> None:
        """`forwarder` is None if nothing is forwarded."""
        self.series = ClientSeries()
        self.subscriptions = ClientSubscriptions()
        #: Accepted pushes, and those refused because of their content.
        self.pushes = 0
        self.malformed = 0
        self._metadata = metadata
        self._settings = settings
        self._pool = pool
        self._randomness = randomness
        self._clock = clock
        #: The instance ids of the clients that have sent requests on open connections.
        self._instances: dict[Connection, Uuid] = {}
        self._configs: object = None
        self.forwarder = forwarder

    @property
    def max_bytes(self) -> int:
        return self._settings.config.integer("telemetry.max.bytes")

    def client(self, instance_id: Uuid, context: RequestContext) -> tuple[Uuid, ClientInstance]:
        """Return the client that sent a request; one without an id gets one."""
        self._follow_metadata()
        if instance_id == ZERO_UUID:
            instance_id = random_uuid(self._randomness)
        self._instances[context.connection] = instance_id
        parameters = _parameters(instance_id, context)
        return instance_id, self.subscriptions.client(
            instance_id, parameters, self.now_ms(), context.connection
        )

    def now_ms(self) -> float:
        return self._clock.monotonic() * 1000

    def disconnected(self, connection: Connection) -> None:
        """Forget the client of a connection; its series stay until they expire."""
        instance_id = self._instances.pop(connection, None)
        if instance_id is not None:
            self.subscriptions.forget(instance_id, connection)

    def expire(self) -> None:
        """Forget clients without requests and series without pushes for a while."""
        self.subscriptions.expire(self.now_ms())
        self.series.expire(self._clock.monotonic())

    async def push(
        self, instance_id: Uuid, client: ClientInstance, context: RequestContext, codec: int, payload: bytes
    ) -> None:
        """Take over the metrics of a push; INVALID_RECORD if they cannot be read."""
        if codec >= len(CODEC_NAMES) or codec < 0:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(payload) > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)
        points: list[Point] = []
        content = b""
        if payload:
            try:
                content, points = await self._pool.run(_decoded, codec, payload, self.max_bytes)
            except DecompressionBomb:
                raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE) from None
            except (CorruptBatch, MalformedMessage) as error:
                self.malformed += 1
                logger.warning(
                    "telemetry of client %s cannot be read: %s",
                    context.client_id,
                    error,
                    extra=event("telemetry.malformed", client_id=context.client_id),
                )
                raise KafkaError(ErrorCode.INVALID_RECORD) from None
        self.pushes += 1
        labels = (
            ("client_id", context.client_id or ""),
            ("client_instance_id", format_uuid(instance_id)),
        )
        self.series.add(instance_id, labels, points, self._clock.monotonic(), client.kept_ms / 1000)
        if self.forwarder is not None and points:
            self.forwarder.forward(content, dict(labels))

    def _follow_metadata(self) -> None:
        """Take over the subscriptions of the metadata, if its configs have changed."""
        image = self._metadata.image
        if image.configs is not self._configs:
            self._configs = image.configs
            self.subscriptions.replace(_subscriptions(image))


def _decoded(codec: int, payload: bytes, max_bytes: int) -> tuple[bytes, list[Point]]:
    content = decompress(codec, payload, max_bytes)
    return content, decode(content)


def _parameters(instance_id: Uuid, context: RequestContext) -> dict[str, str]:
    """Return what the `match` of a subscription can name."""
    name, version = context.connection.client_software
    return {
        "client_instance_id": format_uuid(instance_id),
        "client_id": context.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": context.client_host,
        "client_source_port": str(context.connection.peer_port),
    }


def _subscriptions(image: MetadataImage) -> list[Subscription]:
    found = []
    for resource, texts in image.configs.items():
        if resource.type == ResourceType.CLIENT_METRICS and texts:
            values = {name: key.default for name, key in CLIENT_METRICS_CONFIGS.items()}
            values |= {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in texts.items()}
            metrics, match, interval = values["metrics"], values["match"], values["interval.ms"]
            found.append(
                Subscription(
                    tuple(map(str, metrics)) if isinstance(metrics, tuple) else (),
                    interval if isinstance(interval, int) else 0,
                    parse_match_patterns(match if isinstance(match, tuple) else ()),
                )
            )
    return found
