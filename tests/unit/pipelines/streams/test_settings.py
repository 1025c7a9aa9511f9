"""The configuration of a streams application is checked."""

from __future__ import annotations

import pytest

from moldau.pipelines.streams import (
    StreamsException,
)
from moldau.pipelines.streams.settings import StreamsSettings


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"bootstrap.servers": "a:1"}, "application.id is missing"),
        ({"application.id": "a"}, "bootstrap.servers is missing"),
        (
            {"application.id": "a", "bootstrap.servers": "a:1", "processing.guarantee": "never"},
            "exactly_once_v2 or at_least_once",
        ),
        (
            {
                "application.id": "a",
                "bootstrap.servers": "a:1",
                "deserialization.exception.handler": "ignore",
            },
            "must be fail or continue, not 'ignore'",
        ),
        (
            {"application.id": "a", "bootstrap.servers": "a:1", "auto.offset.reset": "none"},
            "auto.offset.reset must be earliest or latest, not 'none'",
        ),
    ],
)
def test_invalid_config_is_rejected(config: dict[str, str], message: str) -> None:
    with pytest.raises(StreamsException, match=message):
        StreamsSettings.of(config)
