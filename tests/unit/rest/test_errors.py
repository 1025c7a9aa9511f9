"""Kafka's errors as statuses and codes of the REST API."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.rest.errors import of_kafka


@pytest.mark.parametrize(
    ("code", "status", "error_code"),
    [
        (ErrorCode.SASL_AUTHENTICATION_FAILED, 401, 40101),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, 403, 40301),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 404, 40403),
        (ErrorCode.TOPIC_ALREADY_EXISTS, 400, 40002),
        (ErrorCode.INVALID_CONFIG, 400, 40002),
        (ErrorCode.REQUEST_TIMED_OUT, 500, 50003),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 500, 50003),
        (ErrorCode.CORRUPT_MESSAGE, 500, 50003),
        (ErrorCode.KAFKA_STORAGE_ERROR, 500, 50003),
        (ErrorCode.PRODUCER_FENCED, 500, 50002),
    ],
)
def test_code(code: ErrorCode, status: int, error_code: int) -> None:
    answer = of_kafka(KafkaError(code, "why"))
    assert (answer.status, answer.error_code) == (status, error_code)
