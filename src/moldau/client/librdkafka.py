"""Create librdkafka clients from Kafka's property names, and translate librdkafka's errors.

Most names are the same. The others are translated here; names that only Java's clients use are dropped.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException

from moldau.base.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RENAMED = {
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}
#: Configs of Kafka's Java clients that librdkafka does not have, or that are handled in Python.
_DROPPED = frozenset(
    {
        "bootstrap.controllers",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.class",
        "ssl.keystore.type",
        "ssl.truststore.type",
        "value.deserializer",
        "value.serializer",
    }
)
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_JAAS = re.compile(r'username="?(?P<username>[^"\s;]*)"?\s+password="?(?P<password>[^"\s;]*)"?')

#: The error codes that a Kafka client would report, by librdkafka's local error number.
_LOCAL_ERRORS = {
    -142: ErrorCode.ILLEGAL_GENERATION,
    -144: ErrorCode.PRODUCER_FENCED,
    -147: ErrorCode.REBALANCE_IN_PROGRESS,
    -166: ErrorCode.REQUEST_TIMED_OUT,
    -169: ErrorCode.SASL_AUTHENTICATION_FAILED,
    -172: ErrorCode.INVALID_TXN_STATE,
    -180: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    -185: ErrorCode.REQUEST_TIMED_OUT,
    -186: ErrorCode.INVALID_REQUEST,
    -187: ErrorCode.NETWORK_EXCEPTION,
    -188: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -190: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -192: ErrorCode.REQUEST_TIMED_OUT,
    -193: ErrorCode.NETWORK_EXCEPTION,
    -195: ErrorCode.NETWORK_EXCEPTION,
}


class ClientError(KafkaError):
    """An error with its consequence for the client: retry, give up, or abort the transaction."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retriable: bool = False,
        fatal: bool = False,
        abort_required: bool = False,
    ) -> None:
        super().__init__(code, message)
        self.retriable = retriable
        self.fatal = fatal
        self.abort_required = abort_required


def client_error(error: LibrdkafkaError) -> ClientError:
    number = error.code()
    code = _LOCAL_ERRORS.get(number)
    if code is None:
        code = ErrorCode(number) if number in _BROKER_CODES else ErrorCode.UNKNOWN_SERVER_ERROR
    return ClientError(
        code,
        f"{error.str()} ({error.name()})",
        retriable=error.retriable(),
        fatal=error.fatal(),
        abort_required=error.txn_requires_abort(),
    )


_BROKER_CODES = frozenset(int(code) for code in ErrorCode)


def log_error(error: LibrdkafkaError) -> None:
    """Log errors outside of calls: unreachable brokers, a fatal state."""
    logger.warning("%s", client_error(error))


def called(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function of librdkafka and translate its exception."""
    try:
        return function(*args, **kwargs)
    except KafkaException as error:
        raise client_error(error.args[0]) from error


def translate(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Translate Kafka's properties into librdkafka's."""
    settings: dict[str, Any] = {"log_level": 0}
    for name, value in properties.items():
        if name in _DROPPED:
            continue
        if name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = max(1, int(value) // 1024)
        elif name == "partition.assignment.strategy":
            assignors = (item.strip().rpartition(".")[2] for item in value.split(","))
            settings[name] = ",".join(_ASSIGNORS.get(item, item) for item in assignors)
        elif name == "sasl.jaas.config":
            settings.update(_credentials(value))
        else:
            settings[_RENAMED.get(name, name)] = value
    return settings


def _credentials(jaas: str) -> dict[str, str]:
    match = _JAAS.search(jaas)
    if match is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            'sasl.jaas.config: expected ... required username="..." password="...";',
        )
    return {"sasl.username": match["username"], "sasl.password": match["password"]}


def create(
    factory: Callable[[dict[str, Any]], T], settings: dict[str, Any], on_unknown: Callable[[str], None]
) -> T:
    """Create a client; unknown names are left out, because Kafka's clients only warn about them."""
    while True:
        try:
            return factory(settings)
        except (KafkaException, ValueError, TypeError) as error:
            sentence = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            unknown = re.search(r'No such configuration property: "([^"]+)"', sentence)
            if unknown is None or unknown[1] not in settings:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, f"Invalid client configuration: {sentence}"
                ) from error
            on_unknown(unknown[1])
            del settings[unknown[1]]
