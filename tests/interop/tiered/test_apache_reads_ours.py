"""Apache Kafka's classes read what our brokers write: the folder of remote segments, and their metadata."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.testing import Cluster
from tests.harness.tiered.worlds import local, produce, stored, tiered_config, tiered_topic
from tests.harness.waiting import eventually
from tests.interop import jars

_PROGRAM = Path(__file__).parents[1] / "java" / "TieredStorageReader.java"


def read_with_apache(libs: Path, folder: Path, bootstrap: str) -> list[list[str]]:
    try:
        tests = jars.storage_test_jar()
    except jars.Missing as missing:
        pytest.skip(str(missing))
    command = ["java", "-cp", f"{libs}/*:{tests}", str(_PROGRAM), str(folder), bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]


@pytest.mark.interop
def test_apache_reads_our_folder_and_our_metadata_topic(libs: Path, tmp_path: Path) -> None:
    topic = "read-by-apache"
    with Cluster(config=tiered_config(tmp_path)) as cluster:
        tiered_topic(cluster.bootstrap_servers, topic, retention_bytes=str(5 << 20))
        produce(cluster.bootstrap_servers, topic, range(105))
        eventually(lambda: stored(tmp_path, topic) and len(local(cluster.data_dir, topic)) == 1)
        # Some segments have expired, so that there are deletions in the metadata.
        eventually(lambda: stored(tmp_path, topic)[0] > 0)
        starts = eventually(lambda: _settled(tmp_path, topic))
        lines = read_with_apache(libs, tmp_path, cluster.bootstrap_servers)
    kinds: dict[str, list[list[str]]] = {}
    for kind, *fields in lines:
        kinds.setdefault(kind, []).append(fields)
    assert [fields[:2] for fields in kinds["partition"]] == [[topic, "0"]]
    files = {fields[0]: fields[1:] for fields in kinds["files"]}
    assert sorted(int(first) for _, first, _ in files.values()) == starts
    records = kinds["record"]
    assert {fields[0] for fields in records} == {"RemoteLogSegmentMetadata", "RemoteLogSegmentMetadataUpdate"}
    for _, partition, same_bytes, expected in records:
        assert (partition, same_bytes) == (expected, "true")
    segments = kinds["segment"]
    assert {fields[0] for fields in segments} == files.keys()
    for segment_id, state, start, end, announced, size, indexes, epochs in segments:
        count, first, last = files[segment_id]
        assert state == "COPY_SEGMENT_FINISHED"
        assert (start, end) == (first, last)
        assert int(count) == int(end) - int(start) + 1
        assert (announced, indexes) == (size, "4")
        assert epochs == f"{{0={start}}}"


def _settled(folder: Path, topic: str) -> list[int]:
    """Return the start offsets in the folder once retention deletes nothing more."""
    before = stored(folder, topic)
    sizes = sum(path.stat().st_size for path in folder.glob(f"*/{topic}-*/*.log"))
    return before if sizes <= 5 << 20 else []
