"""Record batches in every codec, written by Moldau and read by Java, and the reverse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.protocol.compression import CODEC_NAMES
from moldau.protocol.records import build_batch, check_crc, iter_records, read_batch_header, recompress
from tests.harness.apache.node import java_command, kafka_libs
from tests.wire.record_samples import describe, java_records

pytestmark = pytest.mark.interop

JAVA = Path(__file__).parents[1] / "java" / "RecordBytes.java"
COUNTS = (1, 10, 3000)


def ask_java(lines: list[str]) -> list[str]:
    libs = kafka_libs()
    if libs is None:
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    command = java_command(libs, str(JAVA), heap="512m")
    answer = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def test_java_reads_batches_of_moldau() -> None:
    batches, expected = [], []
    for count in COUNTS:
        records = java_records(count)
        for codec in range(5):
            for level in (None, 1, 6):
                batch = build_batch(records, codec=codec, level=level)
                batches.append(batch.hex())
                batches.append(recompress(batch, read_batch_header(batch), (codec + 1) % 5).hex())
                expected += [describe(records)] * 2
    assert ask_java(batches) == expected


def test_moldau_reads_batches_of_java() -> None:
    questions = [(name, count) for name in CODEC_NAMES for count in COUNTS]
    answers = ask_java([f"build {name} {count}" for name, count in questions])
    for (name, count), answer in zip(questions, answers, strict=True):
        batch = bytes.fromhex(answer)
        header = read_batch_header(batch)
        assert header.codec == CODEC_NAMES.index(name)
        assert check_crc(batch, 0, header)
        assert [record._replace(sequence=-1) for record in iter_records(batch)] == java_records(count)
        if header.codec == 0:
            assert build_batch(java_records(count)) == batch
