"""The schema registry of broker-side schema validation: names of Confluent Server, not of Apache Kafka.

All other properties of the registry's client (`confluent.ssl.*`, `confluent.bearer.auth.*`,
`confluent.schema.registry.max.retries`) are passed to it as they are.
"""

from __future__ import annotations

from moldau.config.definition import PASSWORD, STRING, ConfigKey
from moldau.config.validators import NonEmpty

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "confluent.schema.registry.url",
        STRING,
        None,
        "The URLs of the schema registry, separated by commas, for topics with "
        "`confluent.value.schema.validation` or `confluent.key.schema.validation`. Set it on all nodes.",
        NonEmpty(),
    ),
    ConfigKey(
        "confluent.basic.auth.user.info",
        PASSWORD,
        None,
        "User and password for the schema registry, as `user:password`.",
    ),
)
