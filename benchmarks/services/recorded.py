"""Figures of other registries and proxies, recorded on a machine with 2 cores beside Apache Kafka 4.3.

They were measured with wrk, 8 connections, 3 seconds after a warm-up. Neither product can be installed from a
package registry, so they do not run beside Moldau; ratios to them are indications.
"""

from __future__ import annotations

from benchmarks.report import Aim, Limit
from benchmarks.services import registry, rest
from benchmarks.services.service import CPU_PER_REQUEST
from benchmarks.workloads import RECORDS, REQUESTS, Figures

CONFLUENT: Figures = {
    f"{registry.BY_ID}: {REQUESTS}": 2080,
    f"{registry.BY_ID}: {CPU_PER_REQUEST}": 0.42,
    f"{registry.LATEST}: {REQUESTS}": 3920,
    f"{registry.LOOKUP}: {REQUESTS}": 4070,
    f"{registry.SAME}: {REQUESTS}": 3550,
    f"{registry.CHECK}: {REQUESTS}": 3910,
    f"{registry.CHECK}: {CPU_PER_REQUEST}": 0.39,
    f"{registry.NEW}: {REQUESTS}": 130,
    f"{registry.NEW_ALONE}: {REQUESTS}": 81,
    registry.MEMORY: 375,
    f"{rest.BATCH}: {REQUESTS}": 398,
    f"{rest.BATCH}: {RECORDS}": 39_800,
    f"{rest.BATCH}: {CPU_PER_REQUEST}": 3.7,
    f"{rest.SINGLE}: {REQUESTS}": 1030,
    f"{rest.SINGLE}: {CPU_PER_REQUEST}": 0.9,
    rest.MEMORY: 278,
}
KARAPACE: Figures = {
    registry.READY: 11.3,
    f"{registry.BY_ID}: {REQUESTS}": 251,
    f"{registry.BY_ID}: {CPU_PER_REQUEST}": 3.8,
    f"{registry.LATEST}: {REQUESTS}": 216,
    f"{registry.LOOKUP}: {REQUESTS}": 192,
    f"{registry.SAME}: {REQUESTS}": 192,
    f"{registry.CHECK}: {REQUESTS}": 187,
    f"{registry.CHECK}: {CPU_PER_REQUEST}": 5.2,
    f"{registry.NEW}: {REQUESTS}": 101,
    f"{registry.NEW_ALONE}: {REQUESTS}": 91,
    registry.MEMORY: 137,
    rest.READY: 5.6,
    f"{rest.BATCH}: {REQUESTS}": 65,
    f"{rest.BATCH}: {RECORDS}": 6500,
    f"{rest.BATCH}: {CPU_PER_REQUEST}": 11.9,
    f"{rest.SINGLE}: {REQUESTS}": 69,
    rest.MEMORY: 114,
}
AIMS = (
    Aim(f"{registry.BY_ID}: {REQUESTS}", 2.0, True),
    Aim(f"{registry.LATEST}: {REQUESTS}", 1.5, True),
    Aim(f"{registry.LOOKUP}: {REQUESTS}", 1.5, True),
    Aim(f"{registry.SAME}: {REQUESTS}", 1.5, True),
    Aim(f"{registry.CHECK}: {REQUESTS}", 0.5, True),
    Aim(f"{registry.NEW}: {REQUESTS}", 5.0, True),
    Aim(f"{registry.NEW_ALONE}: {REQUESTS}", 5.0, True),
    Aim(f"{rest.BATCH}: {REQUESTS}", 1.5, True),
    Aim(f"{rest.SINGLE}: {REQUESTS}", 2.0, True),
)
LIMITS = (
    Limit(registry.READY, 0.6),
    Limit(registry.MEMORY, 60),
    Limit(rest.READY, 0.6),
    Limit(rest.MEMORY, 60),
)
