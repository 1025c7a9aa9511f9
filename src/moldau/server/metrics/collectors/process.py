"""The process and its event loop, from `/proc` where it exists, and from the loop-lag sampler."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Final

import moldau
from moldau.metrics.catalog import process
from moldau.metrics.exposition import Scrape
from moldau.metrics.latencies import QUANTILES, quantiles_ms
from moldau.server.metrics.loop import LoopSampler

#: The release of Apache Kafka whose protocol a node serves.
KAFKA_RELEASE: Final = "4.3.0"
_STATM: Final = Path("/proc/self/statm")
_FDS: Final = "/proc/self/fd"
_IO: Final = Path("/proc/self/io")
_PAGE_BYTES: Final = resource.getpagesize()


def collect_process(scrape: Scrape, sampler: LoopSampler, node_id: int) -> None:
    scrape.add(process.BUILD_INFO, 1, moldau.__version__, platform.python_version())
    scrape.add(process.APP_INFO, 1, node_id, KAFKA_RELEASE)
    scrape.add(process.START_TIME_MS, round(sampler.started_at * 1000), node_id)
    used = resource.getrusage(resource.RUSAGE_SELF)
    scrape.add(process.CPU_SECONDS, used.ru_utime + used.ru_stime)
    virtual, resident = _memory(used.ru_maxrss)
    scrape.add(process.VIRTUAL_MEMORY, virtual)
    scrape.add(process.RESIDENT_MEMORY, resident)
    scrape.add(process.OPEN_FDS, _open_files())
    disk = _disk_bytes()
    scrape.add(process.DISK_READ, disk.get("read_bytes", 0))
    scrape.add(process.DISK_WRITE, disk.get("write_bytes", 0))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    scrape.add(process.MAX_FDS, float("inf") if limit == resource.RLIM_INFINITY else limit)
    scrape.add(process.START_TIME, sampler.started_at)
    lag = sampler.lag
    seconds = [milliseconds / 1000 for milliseconds in quantiles_ms(lag.recent())]
    quantiles = zip(QUANTILES, seconds, strict=True)
    scrape.add_summary(process.LOOP_LAG, quantiles, lag.sum_us / 1e6, lag.count)
    scrape.add(process.LOOP_LAG_MAX, sampler.loop_lag.largest_ms / 1000)
    scrape.add(process.LOOP_BLOCKED, sampler.loop_lag.over_budget)


def _memory(largest_resident: int) -> tuple[int, int]:
    """Return virtual and resident memory; the largest resident memory where there is no `/proc`."""
    try:
        virtual, resident, *_ = _STATM.read_text().split()
    except OSError:
        return 0, largest_resident * (1 if sys.platform == "darwin" else 1024)
    return int(virtual) * _PAGE_BYTES, int(resident) * _PAGE_BYTES


def _disk_bytes() -> dict[str, int]:
    try:
        lines = _IO.read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


def _open_files() -> int:
    try:
        return len(os.listdir(_FDS))
    except OSError:
        return 0
