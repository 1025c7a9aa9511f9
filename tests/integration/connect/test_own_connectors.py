"""Connectors of other packages: found by entry point, with retries, seeks, reports and changing tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.connect import Worker, lines_of
from tests.harness.mirror import produce, values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties

MODULE = '''
from pathlib import Path

from moldau.base.ids import TopicPartition
from moldau.pipelines.connect.config.definition import NO_DEFAULT, ConfigDef, ConfigType, Importance
from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import SinkConnector, SinkTask, SourceConnector, SourceTask

TEXT, HIGH = ConfigType.STRING, Importance.HIGH


class Numbers(SourceConnector):
    """Counts, in as many tasks as the file `tasks` says; the offset is the last number. Away at first."""

    config = ConfigDef().define("topic", TEXT, NO_DEFAULT, HIGH, "Topic.").define(
        "folder", TEXT, NO_DEFAULT, HIGH, "Folder of the file tasks."
    )

    def start(self, properties, context):
        super().start(properties, context)
        import threading

        self.stopped = threading.Event()
        self.count = self.wanted()
        threading.Thread(target=self.watch, daemon=True).start()

    def wanted(self):
        return int((Path(self.properties["folder"]) / "tasks").read_text())

    def watch(self):
        while not self.stopped.wait(0.05):
            if self.wanted() != self.count:
                self.count = self.wanted()
                self.context.request_task_reconfiguration()

    def stop(self):
        self.stopped.set()

    def task_configs(self, max_tasks):
        return [{**self.properties, "number": str(n)} for n in range(min(max_tasks, self.count))]

    def task(self):
        return NumbersTask()


class NumbersTask(SourceTask):
    def start(self, context):
        self.context = context
        self.partition = {"task": context.config["number"]}
        self.last = (context.offset(self.partition) or {"last": 0})["last"]
        self.is_away = True

    def poll(self):
        if self.context.wait(0.02):
            return []
        if self.is_away:
            self.is_away = False
            raise RetriableError("away")
        self.last += 1
        config = self.context.config
        value = f"{config['number']}:{self.last}"
        return [SourceRecord(topic=config["topic"], value=value,
                             source_partition=self.partition, source_offset={"last": self.last})]


class Moody(SinkConnector):
    """Refuses the first attempts to write, reports odd numbers, and stores its offset with the data."""

    config = ConfigDef().define("file", TEXT, NO_DEFAULT, HIGH, "File.")

    def task(self):
        return MoodyTask()


class MoodyTask(SinkTask):
    def start(self, context):
        self.context, self.refusals = context, 3
        self.path = Path(context.config["file"])

    def open(self, partitions):
        done = len(self.path.read_text().splitlines()) if self.path.exists() else 0
        self.context.seek({each: done for each in partitions})

    def put(self, records):
        if self.refusals:
            self.refusals -= 1
            self.context.retry_after(100)
            raise RetriableError("busy")
        with self.path.open("a") as file:
            for record in records:
                if int(record.value) % 2:
                    self.context.report(record, ConnectError("odd"))
                file.write(f"{record.offset} {record.value}\\n")
'''
MODULE += '''

class Rewinding(SinkConnector):
    """Writes offsets, and reads the records again once; commits are asked for after every put."""

    config = ConfigDef().define("file", TEXT, NO_DEFAULT, HIGH, "File.")

    def task(self):
        return RewindingTask()


class RewindingTask(SinkTask):
    def start(self, context):
        self.context, self.rewound = context, False

    def pre_commit(self, offsets):
        self.note(f"commit {sorted(offsets.values())}")
        return offsets

    def put(self, records):
        for each in records:
            self.note(f"put {each.offset}")
        self.context.request_commit()
        if not self.rewound and records:
            self.rewound = True
            self.context.seek({TopicPartition(each.topic, each.partition): 0 for each in records})

    def note(self, line):
        with Path(self.context.config["file"]).open("a") as file:
            file.write(line + "\\n")
'''
MODULE += '''

class Refusing(SinkConnector):
    """Refuses the record "refused", and writes others."""

    config = ConfigDef().define("file", TEXT, NO_DEFAULT, HIGH, "File.")

    def task(self):
        return RefusingTask()


class RefusingTask(SinkTask):
    def start(self, context):
        self.context = context

    def put(self, records):
        lines = [f"{each.partition} {each.value}" for each in records]
        with Path(self.context.config["file"]).open("a") as file:
            file.writelines(f"{line}\\n" for line in lines)
        if any(each.value == "refused" for each in records):
            self.context.retry_after(100)
            raise RetriableError("refused")
'''
ENTRY_POINTS = """\
[moldau.connectors]
numbers = own_connectors:Numbers
moody = own_connectors:Moody
rewinding = own_connectors:Rewinding
refusing = own_connectors:Refusing
"""


@pytest.fixture
def worker(bootstrap: str, group: str, tmp_path: Path) -> Iterator[Worker]:
    packages = tmp_path / "packages"
    info = packages / "own_connectors-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "own_connectors.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-connectors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    with Worker(
        tmp_path,
        group_properties(bootstrap, group),
        command="connect-distributed",
        environment={"PYTHONPATH": os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])},
    ) as worker:
        yield worker
        worker.kill()


def test_a_source_changes_its_tasks_and_continues_from_its_offsets(
    bootstrap: str, group: str, worker: Worker, tmp_path: Path
) -> None:
    topic, tasks = f"{group}-numbers", tmp_path / "tasks"
    tasks.write_text("1")
    plugins = {each["class"]: each["type"] for each in worker.api("GET", "/connector-plugins").body}
    assert (plugins["numbers"], plugins["moody"]) == ("source", "sink")
    worker.create(
        "own", {"connector.class": "numbers", "topic": topic, "folder": str(tmp_path), "tasks.max": "5"}
    )
    worker.wait_for("own")
    tasks.write_text("3")
    worker.wait_for("own", tasks=["RUNNING"] * 3)
    eventually(lambda: any(each.startswith("2:") for each in values_of(bootstrap, topic)), what=worker.log)
    worker.api("PUT", "/connectors/own/stop")
    worker.wait_for("own", "STOPPED", [])
    before = [each for each in values_of(bootstrap, topic) if each.startswith("0:")]
    worker.api("PUT", "/connectors/own/resume")
    worker.wait_for("own", tasks=["RUNNING"] * 3)
    eventually(lambda: len([e for e in values_of(bootstrap, topic) if e.startswith("0:")]) > len(before))
    numbers = [int(each.partition(":")[2]) for each in values_of(bootstrap, topic) if each.startswith("0:")]
    # A graceful stop stores the last offset, so nothing is repeated.
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_sink_retries_without_losing_or_repeating_records(
    bootstrap: str, group: str, worker: Worker, tmp_path: Path
) -> None:
    topic, file = f"{group}-in", tmp_path / "moody.txt"
    produce(bootstrap, topic, [str(number) for number in range(500)])
    config = {"connector.class": "moody", "file": str(file), "topics": topic, "errors.tolerance": "all"}
    worker.create(f"{group}-moody", config)
    worker.wait_for(f"{group}-moody")
    produce(bootstrap, topic, [str(number) for number in range(500, 1000)])
    eventually(lambda: len(lines_of(file)) >= 1000, what=worker.log)
    # The sink stores offsets itself, so a restart continues exactly there.
    assert worker.api("POST", f"/connectors/{group}-moody/restart?includeTasks=true").status == 202
    produce(bootstrap, topic, ["1000"])
    eventually(lambda: len(lines_of(file)) >= 1001, what=worker.log)
    assert lines_of(file) == [f"{number} {number}" for number in range(1001)]


def test_offsets_after_a_rewind_are_not_committed(
    bootstrap: str, group: str, worker: Worker, tmp_path: Path
) -> None:
    topic, file = f"{group}-in", tmp_path / "notes.txt"
    produce(bootstrap, topic, ["a"])
    worker.create(f"{group}-r", {"connector.class": "rewinding", "file": str(file), "topics": topic})
    eventually(lambda: lines_of(file)[-1:] == ["commit [1]"], what=worker.log)
    assert lines_of(file) == ["put 0", "commit [0]", "put 0", "commit [1]"]


def test_partitions_are_read_on_when_those_with_refused_records_are_taken_away(
    bootstrap: str, group: str, worker: Worker, tmp_path: Path
) -> None:
    topic, file, name = f"{group}-in", tmp_path / "written.txt", f"{group}-refusing"
    strategy = "partition.assignment.strategy"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
    # Members notice a rebalance with their next heartbeat.
    group_settings = {strategy: "cooperative-sticky", "heartbeat.interval.ms": "200"}
    overrides = {f"consumer.override.{setting}": value for setting, value in group_settings.items()}
    config = {"connector.class": "refusing", "file": str(file), "topics": topic}
    worker.create(name, {**config, **overrides})
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in (0, 1):
        producer.produce(topic, b"good", partition=partition)
    producer.flush(20)
    eventually(lambda: sorted(lines_of(file)) == ["0 good", "1 good"], what=worker.log)
    other = {"bootstrap.servers": bootstrap, "group.id": f"connect-{name}", **group_settings}

    def taken(consumer: Consumer) -> int | None:
        """Return the partition that another member of the group has got."""
        consumer.poll(0.1)
        assignment = consumer.assignment()
        return assignment[0].partition + 1 if len(assignment) == 1 else None

    # The same partition is taken twice, first to see which one it is.
    first = Consumer(other)
    first.subscribe([topic])
    moved = eventually(lambda: taken(first), what=worker.log) - 1
    first.close()
    producer.produce(topic, b"refused", partition=moved)
    producer.flush(20)
    eventually(lambda: lines_of(file).count(f"{moved} refused") > 2, what=worker.log)
    second = Consumer(other)
    second.subscribe([topic])
    assert eventually(lambda: taken(second), what=worker.log) - 1 == moved
    producer.produce(topic, b"later", partition=1 - moved)
    producer.flush(20)
    eventually(lambda: f"{1 - moved} later" in lines_of(file), timeout=20, what=worker.log)
    second.close()


def test_a_reported_record_fails_a_task_that_tolerates_no_errors(
    bootstrap: str, group: str, worker: Worker, tmp_path: Path
) -> None:
    topic, file = f"{group}-in", tmp_path / "strict.txt"
    produce(bootstrap, topic, ["0", "1"])
    worker.create(f"{group}-strict", {"connector.class": "moody", "file": str(file), "topics": topic})
    worker.wait_for(f"{group}-strict", tasks=["FAILED"])
    trace = worker.api("GET", f"/connectors/{group}-strict/tasks/0/status").body["trace"]
    assert "odd" in trace
