"""kafka-delete-records: the output per partition, and invalid offset files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.cli.kafka import delete_records
from moldau.cli.kafka.delete_records import parse_offsets
from moldau.cli.shared.tool import ToolError
from tests.harness.wire.fake_broker import FakeBroker


def test_low_watermark_or_error_is_printed_per_partition(
    broker: FakeBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    partitions = [{"topic": "a", "partition": number, "offset": 5} for number in (0, 1)]
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    assert delete_records.main(["--bootstrap-server", broker.bootstrap, "--offset-json-file", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: a-0\tlow_watermark: 5",
        "partition: a-1\terror: The offset is outside the range of the partition.",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "The input string is not a valid JSON"),
        ("{}", "Missing partitions field"),
        ("[]", "Missing partitions field"),
        ('{"partitions": [], "version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "a", "partition": "0", "offset": 1}]}', "'partition' that is an integer"),
        ('{"partitions": [1]}', "'topic' that is a string"),
        (
            '{"partitions": [{"topic":"a","partition":0,"offset":1},{"topic":"a","partition":0,"offset":2}]}',
            "duplicate topic partitions: a-0",
        ),
    ],
)
def test_invalid_offset_files_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ToolError, match=message.replace("[", r"\[")):
        parse_offsets(text)
