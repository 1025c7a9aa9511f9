"""Files in folders and in S3: names, formats, partitioners, rotation, and reading them back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.connectors.objects.connectors import (
    DirectorySinkConnector,
    DirectorySourceConnector,
    S3SinkConnector,
    S3SourceConnector,
)
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.data.logical import DATE, OPTIONAL_TIMESTAMP, TIME, decimal_schema
from moldau.pipelines.connect.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, array, map_of, struct
from moldau.pipelines.connect.data.struct import Struct
from moldau.testing.connect import SourceRun
from tests.harness.sink_tasks import Partitions, SinkRun

P0 = TopicPartition("events", 0)
EVENT = struct({"id": INT64, "name": OPTIONAL_STRING})


@pytest.fixture
def log() -> Partitions:
    return Partitions()


def settings(folder: Path, **others: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in others.items()}
    return {"name": "files", "topics": "events", "directory": str(folder), "flush.size": "3", **given}


def paths(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def write(config: dict[str, str], log: Partitions, steps: int = 5) -> SinkRun:
    run = SinkRun(DirectorySinkConnector(), config, log).start()
    for _ in range(steps):
        run.step()
    return run


def test_files_have_the_names_and_offsets_of_confluents_sink(tmp_path: Path, log: Partitions) -> None:
    for number in range(8):
        log.add({"id": number}, partition=number % 2)
    write(settings(tmp_path, topics_dir="topics"), log)
    folder = "topics/events/partition="
    assert paths(tmp_path) == [
        f"{folder}0/events+0+0000000000.json",
        f"{folder}1/events+1+0000000000.json",
    ]
    assert (tmp_path / paths(tmp_path)[0]).read_text() == '{"id":0}\n{"id":2}\n{"id":4}\n'
    # Records that are in no file are not committed.
    assert log.committed == {P0: 3, TopicPartition("events", 1): 3}


def test_a_killed_task_writes_the_same_files_again(tmp_path: Path, log: Partitions) -> None:
    for number in range(30):
        log.add(Struct(EVENT, id=number, name="x"), EVENT, timestamp=number * 1000)
    config = settings(
        tmp_path,
        format_class="parquet",
        partitioner_class="TimeBased",
        path_format="'minute'=mm-ss",
        partition_duration_ms="5000",
        timestamp_extractor="Record",
        rotate_interval_ms="10000",
        flush_size="7",
    )
    for batch in (4, 9, 30):
        # No offset is committed: each task begins again, and reads in other portions.
        log.committed.clear()
        run = SinkRun(DirectorySinkConnector(), config, log, batch=batch).start()
        while run.step():
            pass
    query = f"select list(id order by id) from read_parquet('{tmp_path}/**/*.parquet')"
    found = duckdb.connect().execute(query).fetchone()
    assert found is not None
    assert found[0] == list(range(log.committed[P0]))
    assert log.committed[P0] == 25
    assert "events/minute=00-05/events+0+0000000005.snappy.parquet" in paths(tmp_path)


def test_folders_by_field_and_by_time(tmp_path: Path, log: Partitions) -> None:
    for number in range(4):
        moment = datetime(2026, 3, 4 + number // 2, 23, 30, tzinfo=UTC)
        log.add({"id": number, "color": "a/b", "meta": {"at": moment.isoformat()}})
    by_field = settings(
        tmp_path / "f", flush_size="4", partitioner_class="Field", partition_field_name="color"
    )
    write(by_field, log)
    assert paths(tmp_path / "f") == ["events/color=a%2Fb/events+0+0000000000.json"]
    by_time = settings(
        tmp_path / "t",
        flush_size="4",
        partitioner_class="io.confluent.connect.storage.partitioner.DailyPartitioner",
        timezone="Europe/Prague",
        timestamp_extractor="RecordField",
        timestamp_field="meta.at",
    )
    log.committed.clear()
    write(by_time, log)
    # In Prague it is the next day already.
    assert paths(tmp_path / "t") == [
        "events/year=2026/month=03/day=05/events+0+0000000000.json",
        "events/year=2026/month=03/day=06/events+0+0000000002.json",
    ]


RICH = struct(
    {
        "id": INT64,
        "price": decimal_schema(2),
        "day": DATE,
        "hour": TIME,
        "at": OPTIONAL_TIMESTAMP,
        "tags": array(STRING),
        "counts": map_of(STRING, INT32),
        "inner": struct({"a": OPTIONAL_STRING}, optional=True),
    }
)


def rich(number: int) -> Struct:
    return Struct(
        RICH,
        id=number,
        price=Decimal("1.50"),
        day=datetime(2026, 1, 2, tzinfo=UTC),
        hour=datetime(1970, 1, 1, 3, 4, 5, tzinfo=UTC),
        at=datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC),
        tags=["x"],
        counts={"k": number},
        inner=None,
    )


@pytest.mark.parametrize("kind", ["avro", "parquet"])
def test_values_return_with_their_schema(tmp_path: Path, log: Partitions, kind: str) -> None:
    for number in range(6):
        log.add(rich(number), RICH)
    write(settings(tmp_path, format_class=kind), log)
    assert len(paths(tmp_path)) == 2
    source = {"directory": str(tmp_path), "format.class": kind, "record.batch.max.size": "2"}
    with SourceRun(DirectorySourceConnector(), source) as run:
        records = run.read(3)
        run.kill()
        run.start()
        records += run.read(3)
        assert [record.topic for record in records] == ["events"] * 6
        schema = records[0].value_schema
        assert schema is not None
        assert [(field.name, field.schema.type, field.schema.name) for field in schema.fields] == [
            (field.name, field.schema.type, field.schema.name) for field in RICH.fields
        ]
        assert [record.value.values[:-2] for record in records] == [rich(n).values[:-2] for n in range(6)]
        assert [record.value.get("counts") for record in records] == [{"k": n} for n in range(6)]


def test_other_engines_read_the_files(tmp_path: Path, log: Partitions) -> None:
    for number in range(3):
        log.add(rich(number), RICH)
    for kind in ("avro", "parquet", "csv", "json"):
        log.committed.clear()
        write(settings(tmp_path / kind, format_class=kind, compression_type="gzip"), log)
    kinds = ("avro", "parquet", "csv", "json")
    avro, parquet, csv, text = (next((tmp_path / kind).rglob("events+*")) for kind in kinds)
    with avro.open("rb") as file:
        assert [row["price"] for row in fastavro.reader(file)] == [Decimal("1.50")] * 3
    assert pq.read_table(parquet).column("id").to_pylist() == [0, 1, 2]
    assert duckdb.connect().execute(f"select sum(id) from read_csv('{csv}')").fetchone() == (3,)
    assert text.name.endswith(".json.gz")
    lines = gzip.decompress(text.read_bytes()).splitlines()
    assert [json.loads(line)["tags"] for line in lines] == [["x"]] * 3


def test_records_that_do_not_fit_are_reported(tmp_path: Path, log: Partitions) -> None:
    log.add(Struct(EVENT, id=1), EVENT)
    log.add("text", STRING)
    log.add(Struct(EVENT, id=2), EVENT)
    log.add(None)
    run = write(settings(tmp_path, format_class="parquet", flush_size="3"), log)
    assert [record.original_offset for record, _ in run.reported] == [1, 3]
    # A changed schema ends a file, also that of a record that does not fit.
    files = [tmp_path / path for path in paths(tmp_path)]
    assert [each for file in files for each in pq.read_table(file).column("id").to_pylist()] == [1, 2]
    strict = SinkRun(
        DirectorySinkConnector(), settings(tmp_path, format_class="parquet"), log, tolerant=False
    )
    log.committed.clear()
    with pytest.raises(ConnectError, match="Tolerance exceeded"):
        strict.start().step()


def test_files_are_written_by_the_schedule(tmp_path: Path, log: Partitions) -> None:
    log.add({"id": 1})
    config = settings(tmp_path, flush_size="1000", rotate_schedule_interval_ms="200", timezone="UTC")
    run = SinkRun(DirectorySinkConnector(), config, log).start()
    run.run_until(lambda: log.committed.get(P0) == 1)
    assert len(paths(tmp_path)) == 1


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    def errors(**others: str) -> str:
        values = DirectorySinkConnector().validate(settings(tmp_path, **others))
        return " ".join(error for value in values.values() for error in value.errors)

    assert "Unknown format.class orc" in errors(format_class="orc")
    assert "partition.field.name" in errors(partitioner_class="Field")
    assert "path.format" in errors(partitioner_class="TimeBased")
    assert "letter Q" in errors(partitioner_class="TimeBased", path_format="QQ", partition_duration_ms="1")
    assert "Unknown timezone Mars" in errors(partitioner_class="Daily", timezone="Mars")
    assert "at least 1" in errors(flush_size="0")


def test_a_folder_is_read_as_files_arrive_and_grow(tmp_path: Path) -> None:
    config = {
        "directory": str(tmp_path),
        "format.class": "csv",
        "topic": "people",
        "poll.interval.ms": "10",
        "after.processing": "keep",
    }
    (tmp_path / "a.csv").write_text("id,name\n1,Ann\n2,\n")
    with SourceRun(DirectorySourceConnector(), config, max_tasks=2) as run:
        assert [record.value.values for record in run.read(2)] == [["1", "Ann"], ["2", ""]]
        with (tmp_path / "a.csv").open("a") as file:
            file.write("3,Bob\n")
        (tmp_path / "b.csv").write_text("id,city\n4,Rome\n")
        assert sorted(record.value.values for record in run.read(2)) == [["3", "Bob"], ["4", "Rome"]]
        run.restart()
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "c.csv").write_text("id\n5\n")
        assert [record.value.values for record in run.read(1)] == [["5"]]
        assert not any(run.poll() for _ in range(3))


def test_files_are_moved_when_their_records_are_acknowledged(tmp_path: Path) -> None:
    config = {
        "directory": str(tmp_path),
        "format.class": "text",
        "topic": "lines",
        "poll.interval.ms": "10",
        "after.processing": "move",
    }
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with SourceRun(DirectorySourceConnector(), config) as run:
        assert [record.value for record in run.read(2)] == ["one", "two"]
        for _ in range(3):
            run.poll()
        assert paths(tmp_path) == ["processed/a.txt"]


def lines_config(folder: Path, action: str, **others: str) -> dict[str, str]:
    return {
        "directory": str(folder),
        "format.class": "text",
        "topic": "lines",
        "poll.interval.ms": "0",
        "after.processing": action,
        **{name.replace("_", "."): value for name, value in others.items()},
    }


def polls(run: SourceRun, times: int = 3) -> list[Any]:
    return [record.value for _ in range(times) for record in run.poll()]


@pytest.mark.parametrize("action", ["move", "delete"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_new_file_of_the_same_name_is_read_as_a_whole(tmp_path: Path, action: str, restarted: bool) -> None:
    file = tmp_path / "a.txt"
    with SourceRun(DirectorySourceConnector(), lines_config(tmp_path, action)) as run:
        for content in (["one", "two"], ["one", "two"], ["one", "two", "three"], ["x"]):
            file.write_text("".join(f"{line}\n" for line in content))
            assert polls(run) == content
            assert not file.exists()
            assert run.offsets == []
            if restarted:
                run.restart()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_rewritten_file_is_read_from_its_beginning(tmp_path: Path, restarted: bool) -> None:
    file = tmp_path / "a.txt"
    with SourceRun(DirectorySourceConnector(), lines_config(tmp_path, "keep")) as run:
        for content in (["one", "two"], ["new", "two"], ["larger", "than", "before"], ["one"]):
            file.write_text("".join(f"{line}\n" for line in content))
            assert polls(run) == content
            if restarted:
                run.restart()
        # The same content again is nothing new.
        file.write_text("one\n")
        assert polls(run) == []
        with file.open("a") as appended:
            appended.write("two\n")
        assert polls(run) == ["two"]


def test_lines_that_are_appended_before_a_file_is_deleted_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    with SourceRun(DirectorySourceConnector(), lines_config(tmp_path, "delete")) as run:
        assert [record.value for record in run.read(1)] == ["one"]
        with file.open("a") as appended:
            appended.write("two\n")
        assert polls(run) == ["two"]
        assert not file.exists()


def test_a_task_that_was_killed_before_it_deleted_a_file_deletes_it_later(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    with SourceRun(DirectorySourceConnector(), lines_config(tmp_path, "delete")) as run:
        assert [record.value for record in run.read(1)] == ["one"]
        run.kill()
        run.start()
        assert polls(run) == []
        assert not file.exists()


def damage(folder: Path, kind: str) -> None:
    if kind == "gzip":
        (folder / "b.json.gz").write_bytes(
            gzip.compress((b'{"id": 2, "x": "' + b"a" * 100_000 + b'"}\n') * 20)[:-20]
        )
    elif kind == "parquet":
        (folder / "b.parquet").write_bytes(b"PAR1 nonsense PAR1")
    else:
        (folder / "b.avro").write_bytes(b"Obj\x01 nonsense")


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_damaged_file_fails_the_task_or_is_left_where_it_is(
    tmp_path: Path, log: Partitions, kind: str
) -> None:
    for number in range(3):
        log.add(Struct(EVENT, id=number, name="x"), EVENT)
    written = tmp_path / "written"
    write(settings(written, format_class=kind), log)
    (content,) = (each.read_bytes() for each in written.rglob(f"*.{kind}"))
    folder = tmp_path / "read"
    folder.mkdir()
    (folder / f"a.{kind}").write_bytes(content)
    (folder / f"c.{kind}").write_bytes(content)
    damage(folder, kind)
    config = lines_config(folder, "delete", format_class=kind)
    with (
        SourceRun(DirectorySourceConnector(), config) as run,
        pytest.raises(ConnectError, match=rf"b\.{kind}"),
    ):
        polls(run)
    (folder / f"a.{kind}").write_bytes(content)
    with SourceRun(DirectorySourceConnector(), {**config, "errors.tolerance": "all"}) as run:
        assert [value.get("id") for value in polls(run, 8)] == [0, 1, 2] * 2
        assert paths(folder) == [f"b.{kind}"]
        run.restart()
        assert polls(run) == []
        # Once it is repaired it is read.
        (folder / f"b.{kind}").write_bytes(content)
        assert [value.get("id") for value in polls(run)] == [0, 1, 2]


def test_lines_that_are_not_json_are_skipped_if_errors_are_tolerated(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\nnonsense\n{"id": 2}\n{"id"\n')
    config = lines_config(tmp_path, "keep", format_class="json")
    with (
        SourceRun(DirectorySourceConnector(), config) as run,
        pytest.raises(ConnectError, match=r"a\.json: record 2"),
    ):
        polls(run)
    with SourceRun(DirectorySourceConnector(), {**config, "errors.tolerance": "all"}) as run:
        assert [value["id"] for value in polls(run)] == [1, 2]
        run.restart()
        assert polls(run) == []
        with (tmp_path / "a.json").open("a") as appended:
            appended.write('{"id": 3}\n')
        assert [value["id"] for value in polls(run)] == [3]


def test_a_truncated_gzip_file_is_skipped_if_errors_are_tolerated(tmp_path: Path) -> None:
    damage(tmp_path, "gzip")
    (tmp_path / "c.json").write_text('{"id": 3}\n')
    config = lines_config(tmp_path, "keep", format_class="json", record_batch_max_size="2")
    with SourceRun(DirectorySourceConnector(), {**config, "errors.tolerance": "all"}) as run:
        found = [value["id"] for value in polls(run, 12)]
    assert set(found[:-1]) == {2}
    assert found[-1] == 3


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="lake")
    yield {
        "s3.bucket.name": "lake",
        "s3.region": "us-east-1",
        "store.url": url,
        "aws.access.key.id": "id",
        "aws.secret.access.key": "secret",
    }
    server.stop()


def test_s3_from_topic_to_bucket_to_topic(s3: dict[str, str], log: Partitions) -> None:
    for number in range(9):
        log.add(Struct(EVENT, id=number, name="n"), EVENT)
    config = {
        **s3,
        "topics": "events",
        "flush.size": "4",
        "format.class": "ParquetFormat",
        "s3.compression.type": "none",
    }
    connector = S3SinkConnector()
    assert not [error for value in connector.validate(config).values() for error in value.errors]
    run = SinkRun(connector, config, log).start()
    run.run_until(lambda: log.committed.get(P0) == 8)
    source: dict[str, Any] = {**s3, "format.class": "parquet", "poll.interval.ms": "10"}
    with SourceRun(S3SourceConnector(), source) as back:
        records = back.read(8)
        assert [(record.topic, record.value.get("id")) for record in records] == [
            ("events", n) for n in range(8)
        ]
        assert back.offsets[0][0] == {"file": "topics/events/partition=0/events+0+0000000000.snappy.parquet"}


def test_a_store_that_is_away_holds_the_records(s3: dict[str, str], log: Partitions) -> None:
    away = {
        **s3,
        "store.url": "http://127.0.0.1:1",
        "topics": "events",
        "flush.size": "1",
        "retry.backoff.ms": "0",
    }
    log.add({"id": 1})
    run = SinkRun(S3SinkConnector(), away, log).start()
    assert run.step() == 0
    assert log.committed == {}
