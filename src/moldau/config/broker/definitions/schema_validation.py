"""The schema registry of broker-side schema validation: names of Confluent Server, not of Apache Kafka.

All other properties of the registry's client (`confluent.ssl.*`, `confluent.bearer.auth.*`,
`confluent.schema.registry.proxy`) are passed to it as they are.
"""

from __future__ import annotations

from moldau.config.definition import INT, PASSWORD, STRING, ConfigKey
from moldau.config.validators import NonEmpty, OneOf, at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "confluent.schema.registry.url",
        STRING,
        None,
        "The URLs of the schema registry, separated by commas, for topics with "
        "`confluent.value.schema.validation` or `confluent.key.schema.validation`. Set it on all nodes.",
        NonEmpty(),
        internal=True,
    ),
    ConfigKey(
        "confluent.schema.registry.max.cache.size",
        INT,
        10_000,
        "The maximum number of cached schema ids that are registered under the subject of a topic.",
        at_least(1),
        internal=True,
    ),
    ConfigKey(
        "confluent.schema.registry.max.retries",
        INT,
        1,
        "The maximum number of times that a request to the schema registry is repeated on all URLs.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "confluent.schema.registry.retries.wait.ms",
        INT,
        100,
        "The maximum time in milliseconds before the first repetition of a request to the schema registry.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "confluent.missing.id.cache.ttl.sec",
        INT,
        5,
        "The time in seconds that a schema id that is not registered under the subject is refused without "
        "another request to the schema registry.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "confluent.basic.auth.credentials.source",
        STRING,
        None,
        "The source of the credentials for the schema registry: `confluent.basic.auth.user.info` (USER_INFO) "
        "or the URL (URL).",
        OneOf(("USER_INFO", "URL")),
        internal=True,
    ),
    ConfigKey(
        "confluent.basic.auth.user.info",
        PASSWORD,
        None,
        "User and password for the schema registry, as `user:password`.",
        internal=True,
    ),
)
