"""Every message and version, including stored records, compared with the codecs of Kafka's Java classes.

Java encodes our JSON and decodes our bytes to JSON; both must equal our own results.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.protocol.json_form import to_json
from moldau.protocol.schema import Message, decode, encode_bytes
from moldau.protocol.writer import holds_records
from tests.harness.apache.node import java_command, kafka_libs
from tests.wire.catalog import every_version
from tests.wire.samples import random_message

pytestmark = pytest.mark.interop

SAMPLES = 5
JAVA = Path(__file__).parents[1] / "java" / "MessageBytes.java"
PACKAGES = {
    "metadata": "org.apache.kafka.common.metadata",
    "classic_groups": "org.apache.kafka.coordinator.group.generated",
    "consumer_groups": "org.apache.kafka.coordinator.group.generated",
    "share_groups": "org.apache.kafka.coordinator.group.generated",
    "streams_groups": "org.apache.kafka.coordinator.group.generated",
    "share_state": "org.apache.kafka.coordinator.share.generated",
    "transaction_state": "org.apache.kafka.coordinator.transaction.generated",
    "quorum_state": "org.apache.kafka.raft.generated",
    "remote_log": "org.apache.kafka.server.log.remote.metadata.storage.generated",
}


def java_class(message: type[Message]) -> str:
    *_, package, module = message.__module__.split(".")
    if package == "messages":
        return f"org.apache.kafka.common.message.{message.__name__}Data"
    return f"{PACKAGES.get(module, 'org.apache.kafka.common.message')}.{message.__name__}"


def samples() -> Iterator[tuple[Message, int]]:
    rng = random.Random(43)
    for cls, version in every_version():
        for _ in range(SAMPLES):
            yield random_message(cls, version, rng), version


def test_java_encodes_every_message_to_the_same_bytes() -> None:
    libs = kafka_libs()
    if libs is None:
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    questions = list(samples())
    lines = [
        f"{java_class(type(m))}\t{v}\t{json.dumps(to_json(m, v))}\t{encode_bytes(m, v).hex()}\n"
        for m, v in questions
    ]
    command = java_command(libs, str(JAVA), heap="512m")
    answer = subprocess.run(command, input="".join(lines), capture_output=True, text=True, encoding="utf-8")
    assert answer.returncode == 0, answer.stderr
    answers = answer.stdout.splitlines()
    assert len(answers) == len(questions)
    for (message, version), line in zip(questions, answers, strict=True):
        check(message, version, *line.split("\t"))


def check(message: Message, version: int, data: str, text: str, left: str) -> None:
    assert data == encode_bytes(message, version).hex(), f"{message} v{version}: {text}"
    if not holds_records(type(message), version):  # Java omits them from its JSON.
        assert json.loads(text) == to_json(message, version)
    assert left == "0"
    assert decode(type(message), bytes.fromhex(data), version) == message
