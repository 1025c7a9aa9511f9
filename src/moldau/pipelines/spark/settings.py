"""The settings of a session for pipelines. Each has its reason; figures are from two cores with `local[2]`.

Everything here yields to what the caller sets. Where the caller's own Java options meet ours, both count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources

#: Checkpoints on a local disk, without the detour over another file system layer: 39 ms, not 90 ms, for an
#: empty micro-batch. On a cluster the checkpoint lies elsewhere, and Spark's own choice is the safe one.
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_WORKER_VARIABLE = "spark.executorEnv."


def is_local(master: str) -> bool:
    return master.startswith("local")


def common_settings() -> dict[str, str]:
    """What every pipeline wants, wherever it runs."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # Exactly once needs the same tasks when a batch is done again.
        "spark.sql.adaptive.streaming.stateless.enabled": "false",
        # Between JVM and Python: larger batches, fewer calls, no TCP: 0.8 to 1.5 million rows/s of 100 bytes.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.buffer.size": str(1 << 20),
        # What is kept about jobs that are done grows with every micro-batch.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        # A task that waits for the machine with its data waits longer than a micro-batch takes.
        "spark.locality.wait": "0s",
    }


def local_settings(cores: int, memory_bytes: int) -> dict[str, str]:
    """What a session in this process wants: nothing leaves the machine, and every core has one task."""
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
    """For the driver's JVM: our logging, the class archive, and for a quick start only the first compiler."""
    options = [f"-Dlog4j2.configurationFile={resources.files(__package__) / 'log4j2.properties'}"]
    if quick_start:
        options.append("-XX:TieredStopAtLevel=1")
    return [*options, *archive]


def merged(settings: Mapping[str, str], options: Sequence[str], config: Mapping[str, str]) -> dict[str, str]:
    """All settings, the caller's last."""
    together = [*options, config.get(DRIVER_OPTIONS, "")]
    return {**settings, **config, DRIVER_OPTIONS: " ".join(filter(None, together))}


def worker_variables(config: Mapping[str, str]) -> dict[str, str]:
    """What Spark adds to the variables of its Python processes: as many threads as a task has cores, whatever
    the driver has, and what the caller wants."""
    given = {
        name.removeprefix(_WORKER_VARIABLE): value
        for name, value in config.items()
        if name.startswith(_WORKER_VARIABLE)
    }
    return {"OMP_NUM_THREADS": config.get("spark.task.cpus", "1"), **given}


def local_cores(master: str) -> int:
    """How many tasks `local`, `local[4]`, `local[*,4]` run at once."""
    inside = master.partition("[")[2].rstrip("]").partition(",")[0].strip()
    if inside == "*":
        return os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1


def memory_bytes() -> int:
    """The memory of this machine, or of the container it is."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
    except OSError:
        return whole
    return min(whole, int(limit)) if limit.isdigit() else whole
