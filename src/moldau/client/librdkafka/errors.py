"""The errors of librdkafka, as Kafka's error codes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event

logger = logging.getLogger(__name__)

T = TypeVar("T")

_AUTHENTICATION, _SSL, _TRANSPORT = -169, -181, -195
#: The error codes that a Kafka client would report, by librdkafka's local error number.
_LOCAL_ERRORS = {
    -142: ErrorCode.ILLEGAL_GENERATION,
    -144: ErrorCode.PRODUCER_FENCED,
    -147: ErrorCode.REBALANCE_IN_PROGRESS,
    -166: ErrorCode.REQUEST_TIMED_OUT,
    _AUTHENTICATION: ErrorCode.SASL_AUTHENTICATION_FAILED,
    -172: ErrorCode.INVALID_TXN_STATE,
    _SSL: ErrorCode.NETWORK_EXCEPTION,
    -180: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    -185: ErrorCode.REQUEST_TIMED_OUT,
    -186: ErrorCode.INVALID_REQUEST,
    -187: ErrorCode.NETWORK_EXCEPTION,
    -188: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -190: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    -192: ErrorCode.REQUEST_TIMED_OUT,
    -193: ErrorCode.NETWORK_EXCEPTION,
    _TRANSPORT: ErrorCode.NETWORK_EXCEPTION,
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


def is_refusal(error: LibrdkafkaError) -> bool:
    """Return whether a broker refused the login, or one side the certificate of the other.

    librdkafka retries without end; Java's clients report it to the caller.
    """
    number, text = error.code(), error.str()
    # With TLS 1.3, the server's alert arrives after the handshake.
    is_tls = number == _SSL or (number == _TRANSPORT and "alert" in text)
    return number == _AUTHENTICATION or (is_tls and ("certificate" in text or "unknown ca" in text))


def log_error(error: LibrdkafkaError) -> None:
    """Log errors outside of calls: unreachable brokers, a fatal state."""
    logger.warning("%s", client_error(error), extra=event("client.error"))


def called(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function of librdkafka and translate its exception."""
    try:
        return function(*args, **kwargs)
    except KafkaException as error:
        raise client_error(error.args[0]) from error
