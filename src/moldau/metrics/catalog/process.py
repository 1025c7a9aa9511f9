"""The process and its event loop: names of Prometheus' client libraries, and ours."""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import counter, gauge, summary

BUILD_INFO: Final = gauge("moldau_build_info", "1, with the release.", ("version", "python"))
APP_INFO: Final = gauge(
    "kafka_server_app_info",
    "1, with the release of Apache Kafka whose protocol is served.",
    ("id", "version"),
)
START_TIME_MS: Final = gauge(
    "kafka_server_app_info_starttimems", "Start of the process, in milliseconds since 1970.", ("id",)
)
CPU_SECONDS: Final = counter("process_cpu_seconds_total", "Processor time, user and system.")
OPEN_FDS: Final = gauge("process_open_fds", "Open file descriptors.")
MAX_FDS: Final = gauge("process_max_fds", "Limit of open file descriptors.")
RESIDENT_MEMORY: Final = gauge("process_resident_memory_bytes", "Resident memory.")
VIRTUAL_MEMORY: Final = gauge("process_virtual_memory_bytes", "Virtual memory.")
START_TIME: Final = gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.")
DISK_READ: Final = gauge(
    "kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes read from disks; Linux only."
)
DISK_WRITE: Final = gauge(
    "kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes written to disks; Linux only."
)
LOOP_LAG: Final = summary(
    "moldau_event_loop_lag_seconds",
    "How late timers of the event loop run; requests that arrive meanwhile wait as long.",
)
LOOP_LAG_MAX: Final = gauge(
    "moldau_event_loop_lag_max_seconds", "Largest lag of the event loop since the start."
)
LOOP_BLOCKED: Final = counter(
    "moldau_event_loop_lag_over_budget_total", "Samples of the event loop's lag above 10 ms."
)
OPEN_LOG_FILES: Final = gauge("moldau_open_log_files", "Open files of segments.")
SCRAPE_SECONDS: Final = gauge(
    "moldau_metrics_scrape_seconds", "Time of the event loop that the previous scrape took."
)
OMITTED: Final = gauge(
    "moldau_metrics_omitted",
    "Topics, partitions and group partitions without samples of their own (`metrics.max.*`), and group "
    "partitions whose high watermark did not arrive in time (`group_lags`).",
    ("kind",),
)

FAMILIES: Final = (
    BUILD_INFO,
    APP_INFO,
    START_TIME_MS,
    CPU_SECONDS,
    OPEN_FDS,
    MAX_FDS,
    RESIDENT_MEMORY,
    VIRTUAL_MEMORY,
    START_TIME,
    DISK_READ,
    DISK_WRITE,
    LOOP_LAG,
    LOOP_LAG_MAX,
    LOOP_BLOCKED,
    OPEN_LOG_FILES,
    SCRAPE_SECONDS,
    OMITTED,
)
