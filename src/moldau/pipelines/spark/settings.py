"""The Spark settings of a session. Figures were measured on two cores with `local[2]`.

The caller's settings override these; the caller's Java options are appended to ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources

#: For checkpoints on a local disk: 39 ms instead of 90 ms for an empty micro-batch. On a cluster the
#: checkpoint is on another file system, for which Spark's default is the safe choice.
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

#: The options of sources and sinks whose values plans do not show. Spark hides passwords, secrets and tokens
#: itself, by their names.
REDACTED = "spark.sql.redaction.options.regex"
REDACTED_OPTIONS = "(?i)url|jaas[.]config|keystore[.]key|key[.]pem"

#: The URL to which spans of micro-batches are sent; none are made without it.
TRACES_ENDPOINT = "spark.moldau.traces.otlp.endpoint"

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_ENV = "spark.executorEnv."


def is_local(master: str) -> bool:
    return master.startswith("local")


def common_settings() -> dict[str, str]:
    """Return the settings of every session."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # A batch stores the changes of its state, not files of RocksDB: 6 instead of 71 ms.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Exactly-once delivery needs the same tasks when a batch is replayed.
        "spark.sql.adaptive.streaming.stateless.enabled": "false",
        # Larger Arrow batches and Unix sockets between JVM and Python: 1.5 instead of 0.8 million rows/s.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.buffer.size": str(1 << 20),
        REDACTED: REDACTED_OPTIONS,
        # The history of completed jobs grows with every micro-batch.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        # Waiting for a local executor takes longer than a micro-batch.
        "spark.locality.wait": "0s",
    }


def local_settings(cores: int, memory_bytes: int) -> dict[str, str]:
    """Return the settings of a session on this machine: bound to localhost, one task per core."""
    megabytes = min(max(memory_bytes // 4 >> 20, 1024), 4096)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "localhost",
        "spark.driver.memory": f"{megabytes}m",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.streaming.checkpointFileManagerClass": _LOCAL_CHECKPOINTS,
        "spark.python.daemon.module": "moldau.pipelines.spark.worker_daemon",
    }


def java_options(quick_start: bool, archive: Sequence[str]) -> list[str]:
    """Return the driver's JVM options: logging, class archive, for a quick start the C1 compiler only."""
    options = [f"-Dlog4j2.configurationFile={resources.files(__package__) / 'log4j2.properties'}"]
    if quick_start:
        options.append("-XX:TieredStopAtLevel=1")
    return [*options, *archive]


def merged(settings: Mapping[str, str], options: Sequence[str], config: Mapping[str, str]) -> dict[str, str]:
    """Return all settings; the caller's override ours, Java options are joined."""
    together = [*options, config.get(DRIVER_OPTIONS, "")]
    return {**settings, **config, DRIVER_OPTIONS: " ".join(filter(None, together))}


def worker_variables(config: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that Spark sets for its Python processes: one thread per task core,
    and those in the caller's settings."""
    given = {
        name.removeprefix(_EXECUTOR_ENV): value
        for name, value in config.items()
        if name.startswith(_EXECUTOR_ENV)
    }
    return {"OMP_NUM_THREADS": config.get("spark.task.cpus", "1"), **given}


def local_cores(master: str) -> int:
    """Return the number of concurrent tasks of a master such as `local`, `local[4]`, `local[*,4]`."""
    inside = master.partition("[")[2].rstrip("]").partition(",")[0].strip()
    if inside == "*":
        return os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1


def memory_bytes() -> int:
    """Return the memory of this machine or container."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
    except OSError:
        return whole
    return min(whole, int(limit)) if limit.isdigit() else whole
