"""Settings by Confluent's names, and their table in the module's docstring."""

from __future__ import annotations

import re

import pytest

from moldau.config.definition import ConfigError
from moldau.rest import settings
from moldau.rest.settings import RestSettings

BOOTSTRAP = {"bootstrap.servers": "localhost:9092"}


def test_prefixes_select_clients() -> None:
    read = RestSettings.from_properties(
        {
            **BOOTSTRAP,
            "client.security.protocol": "SSL",
            "producer.compression.type": "lz4",
            "consumer.fetch.min.bytes": "7",
            "consumer.threads": "2",
        }
    )
    assert read.admin == {**BOOTSTRAP, "security.protocol": "SSL"}
    assert read.producer == {**read.admin, "compression.type": "lz4"}
    assert read.consumer == {**read.admin, "fetch.min.bytes": "7"}
    assert read.consumer_threads == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap.servers", ""),
        ("consumer.instances.max", "many"),
        ("confluent.rest.auth.propagate.method", "MAGIC"),
        ("confluent.rest.auth.propagate.method", "SSL"),
        ("fetch.min.bytes", "x"),
    ],
)
def test_invalid_values_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(name)):
        RestSettings.from_properties({**BOOTSTRAP, name: value})


def test_the_table_has_the_defaults() -> None:
    read = RestSettings.from_properties(BOOTSTRAP)
    assert settings.__doc__ is not None
    documented = dict(re.findall(r"^\| `([\w.]+)` \| (\d+) \|", settings.__doc__, re.MULTILINE))
    values = {str(getattr(read, name)) for name in read.__slots__}
    assert len(documented) > 8
    assert set(documented.values()) <= values
