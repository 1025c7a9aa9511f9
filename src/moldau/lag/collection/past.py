"""The end offsets of a partition in the past, found without reading records.

ListOffsets returns the first record that is not older than a timestamp: the end offset at that time. A search
over the time finds when the record at a committed offset was appended, so that the first round knows how old
the lag is: the ages are asked in steps of eight, then divided until the error is a twentieth of the age.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Final

from moldau.base.ids import TopicPartition
from moldau.client.wire.cluster import Cluster
from moldau.lag.collection.batches import Batches
from moldau.lag.collection.offsets import partition_offsets
from moldau.lag.evaluation.observation import Points

_FIRST_AGE_MS: Final = 15_000
_STEP: Final = 8
_MAX_AGE_MS: Final = 90 * 24 * 3600 * 1000
_PRECISE_MS: Final = 1000
_PRECISE_PART: Final = 20
_MAX_REQUESTS: Final = 16


async def past_offsets(
    cluster: Cluster,
    batches: Batches,
    leaders: Mapping[TopicPartition, int],
    wanted: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    now_ms: int,
) -> dict[TopicPartition, Points]:
    """Return end offsets around the time at which the record at the wanted offset was appended."""
    found: dict[TopicPartition, dict[int, int]] = {partition: {} for partition in wanted}
    for _ in range(_MAX_REQUESTS):
        ages = {
            partition: age
            for partition, points in found.items()
            if (age := next_age(points, wanted[partition])) is not None
        }
        if not ages:
            break
        times = {partition: now_ms - age for partition, age in ages.items()}
        answers = await partition_offsets(cluster, batches, leaders, times)
        for partition, age in ages.items():
            offset = answers.get(partition)
            if offset is None:
                del found[partition]
            else:
                # Without a record since then, the log ended where it ends now.
                found[partition][age] = offset if offset >= 0 else ends[partition]
    return {
        partition: [(now_ms - age, points[age]) for age in sorted(points, reverse=True)]
        for partition, points in found.items()
    }


def next_age(points: Mapping[int, int], offset: int) -> int | None:
    """Return the age at which to ask for the end offset next; None if it is known well enough.

    `points` are end offsets by age. The record at `offset` is not younger than an age at which the log ended
    after it, and younger than an age at which the log ended at or before it.
    """
    low = max((age for age, end in points.items() if end > offset), default=0)
    high = min((age for age, end in points.items() if end <= offset), default=None)
    if high is None:
        age = min(low * _STEP or _FIRST_AGE_MS, _MAX_AGE_MS)
        return age if age > low else None
    if high - low <= max(_PRECISE_MS, low // _PRECISE_PART):
        return None
    # Ages are searched by their ratio.
    middle = isqrt(max(low, _PRECISE_MS) * high)
    return middle if low < middle < high else (low + high) // 2
