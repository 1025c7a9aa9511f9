"""Metrics, health, telemetry and traces over HTTP: ours, not Kafka's, which has JMX for it.

They are internal, so that DescribeConfigs returns what Kafka returns.
"""

from __future__ import annotations

from moldau.config.definition import DOUBLE, INT, STRING, ConfigKey
from moldau.config.validators import NonEmpty, at_least, between

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "metrics.port",
        INT,
        -1,
        "The port of `/metrics`, `/healthz` and `/readyz`. 0 takes any free port, -1 opens none.",
        between(-1, 65_535),
        internal=True,
    ),
    ConfigKey(
        "metrics.host",
        STRING,
        None,
        "The address on which `metrics.port` listens. By default it is the host of the first listener.",
        NonEmpty(),
        internal=True,
    ),
    ConfigKey(
        "metrics.max.topics",
        INT,
        1000,
        "The maximum number of topics with metrics of their own: those with the most traffic. All others are "
        "part of the totals.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "metrics.max.partitions",
        INT,
        10_000,
        "The maximum number of partitions with metrics of their own, those of the topics with the most "
        "traffic, and of partitions of consumer groups.",
        at_least(0),
        internal=True,
    ),
    ConfigKey(
        "metrics.otlp.endpoint",
        STRING,
        None,
        "The URL to which metrics that clients push are forwarded, such as "
        "`http://collector:4318/v1/metrics`. Without it, they appear at `/metrics` only.",
        NonEmpty(),
        internal=True,
    ),
    ConfigKey(
        "traces.otlp.endpoint",
        STRING,
        None,
        "The URL to which the broker sends OpenTelemetry spans of Produce and Fetch requests, such as "
        "`http://collector:4318/v1/traces`. Without it, requests are not traced.",
        NonEmpty(),
        internal=True,
    ),
    ConfigKey(
        "traces.sampling.ratio",
        DOUBLE,
        1.0,
        "The share of Produce and Fetch requests that are traced, from 0 to 1.",
        between(0, 1),
        internal=True,
    ),
    ConfigKey(
        "traces.max.per.second",
        INT,
        100,
        "The maximum number of traced requests per second. Further requests are served without a span.",
        at_least(0),
        internal=True,
    ),
)
