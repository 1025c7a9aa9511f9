"""The clients that generate load: librdkafka in C, and Kafka's Java performance tools.

Python clients are too slow to reach the limits of a broker. `load.c` and `Consume.java` are compiled here.
The last line that a client prints is its result.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.harness.apache.node import java_command
from tests.interop import jars

Outcome = dict[str, float]
FOLDER = jars.FOLDER / "bench"
_HERE = Path(__file__).parent
_SENT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")
#: The default JVM options; a client that runs for seconds needs the optimising compiler.
_JAVA_OPTIONS = ("-XX:+UseSerialGC",)


class Librdkafka:
    def __init__(self) -> None:
        if shutil.which("gcc") is None:
            sys.exit("The load generator needs a C compiler and librdkafka (apt install gcc librdkafka-dev).")
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._program = FOLDER / "load"
        command = ["gcc", "-O2", "-o", str(self._program), str(_HERE / "load.c"), "-lrdkafka"]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if "rdkafka.h" in compiled.stderr:
            sys.exit("librdkafka's header is not installed (apt install librdkafka-dev).")
        if compiled.returncode != 0:
            sys.exit(f"load.c cannot be compiled: {compiled.stderr}")

    def run(
        self,
        kind: str,
        bootstrap: str,
        topic: str,
        count: int,
        size: int,
        settings: Sequence[str] = (),
        *,
        partitions: int = 1,
    ) -> Outcome:
        words = (kind, bootstrap, topic, partitions, count, size, *settings)
        return _last_json([str(self._program), *map(str, words)])


class JavaClient:
    def __init__(self, libs: Path) -> None:
        self._libs = libs
        self._classes = jars.compiled(_HERE / "Consume.java", libs, jars.KAFKA)

    def produce(self, bootstrap: str, topic: str, count: int, size: int, acks: str) -> Outcome:
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(count)]
        words += ["--record-size", str(size), "--throughput", "-1", "--command-property", f"acks={acks}"]
        main = "org.apache.kafka.tools.ProducerPerformance"
        output = _output_of(java_command(self._libs, main, *words, heap="512m", options=_JAVA_OPTIONS))
        records, rate = _SENT.findall(output)[-1]
        if int(records) != count:
            sys.exit(f"Java's producer sent {records} of {count} records:\n{output}")
        return {"records_per_s": float(rate)}

    def consume(self, bootstrap: str, topic: str, count: int) -> Outcome:
        command = java_command(self._libs, "Consume", bootstrap, topic, str(count), heap="512m", options=())
        command[command.index("-cp") + 1] += f":{self._classes}"
        return _last_json(command)


def _last_json(command: list[str]) -> Outcome:
    outcome: Outcome = json.loads(_output_of(command).splitlines()[-1])
    return outcome


def _output_of(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        sys.exit(f"a client failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout
