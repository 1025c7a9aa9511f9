"""`moldau lag` as a process: table, JSON and exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from tests.harness.lag.scene import LagScene
from tests.harness.lag.webhook import Receiver
from tests.harness.tools import Tools, run_tool, tool_command
from tests.harness.waiting import eventually

SHORT = ("--once", "--window", "1", "--interval", "0.2")


@pytest.fixture(scope="module")
def behind(bootstrap: str) -> Iterator[LagScene]:
    """A group that has stopped 30 records before the end."""
    scene = LagScene(bootstrap, partitions=2)
    scene.start()
    scene.drain()
    scene.close()
    scene.produce(15)
    yield scene


@pytest.fixture(scope="module")
def fine(bootstrap: str) -> Iterator[LagScene]:
    """A group without lag."""
    scene = LagScene(bootstrap)
    scene.start()
    scene.drain()
    scene.close()
    yield scene


def rows(lines: list[str], group: str) -> list[dict[str, str]]:
    """Return the rows of a group in the table."""
    names = lines[0].split()
    found = [line.split() for line in lines if line.startswith(f"{group} ")]
    return [dict(zip(names, words, strict=True)) for words in found]


def test_one_look_shows_the_lag_without_a_verdict(behind: LagScene, tools: Tools) -> None:
    done = tools.run("lag", "--once")
    assert done.code == 0
    (row,) = rows(done.lines, behind.group)
    assert (row["TYPE"], row["STATE"], row["MEMBERS"], row["LAG"]) == ("classic", "Empty", "0", "30")
    assert row["STATUS"] == "-" and 0 < float(row["SECONDS"]) < 100


def test_one_look_finds_the_age_of_the_lag(bootstrap: str, tools: Tools) -> None:
    scene = LagScene(bootstrap)
    hours = [50, 30, 2]
    scene.produce_at([time.time() - each * 3600 for each in hours])
    for offset, age in enumerate(hours):
        with AdminClient(bootstrap) as admin:
            checked(admin.alter_group_offsets(scene.group, {TopicPartition(scene.topic, 0): offset}))
        done = tools.run("lag", "--once", "--json", "--group", scene.group)
        (group,) = json.loads(done.out)["groups"]
        assert group["lag"] == 3 - offset
        assert group["lag_seconds"] == pytest.approx(age * 3600, rel=0.06)


def test_a_window_gives_a_verdict_and_an_exit_code(behind: LagScene, fine: LagScene, tools: Tools) -> None:
    stopped = tools.run("lag", *SHORT, "--group", behind.group)
    assert stopped.code == 3
    assert [each["STATUS"] for each in rows(stopped.lines, behind.group)] == ["STOP", "STOP"]
    assert f"STOP {behind.group}: {behind.topic}-" in stopped.out
    assert "the group has no members" in stopped.out
    assert tools.run("lag", *SHORT, "--group", fine.group).code == 0
    assert tools.run("lag", *SHORT, "--group", behind.group, "--allowed-lag", "15").code == 0


def test_json(behind: LagScene, tools: Tools) -> None:
    done = tools.run("lag", "--once", "--json", "--group", behind.group)
    (line,) = done.lines
    document = json.loads(line)
    (group,) = document["groups"]
    assert document["status"] == "OK" and not group["judged"]
    assert (group["group"], group["lag"], group["type"], group["state"]) == (
        behind.group,
        30,
        "classic",
        "Empty",
    )
    assert [each["partition"] for each in group["partitions"]] == [0, 1]
    for each in group["partitions"]:
        assert each["topic"] == behind.topic
        assert each["log_end_offset"] - each["committed_offset"] == each["lag"] == 15
        assert each["lag_seconds_is_lower_bound"] is False


def test_a_topic_filter_concerns_partitions_without_commits_too(bootstrap: str, tools: Tools) -> None:
    """A member owns them, so they are listed; those of other topics are not."""
    scene, other = LagScene(bootstrap), LagScene(bootstrap, partitions=2)
    scene.start()
    assert scene.consumer is not None
    try:
        scene.consumer.subscribe([scene.topic, other.topic])

        def owned() -> bool:
            scene.read(1)
            return scene.consumer is not None and len(scene.consumer.assignment()) == 3

        eventually(owned, timeout=30)
        for topics, partitions in ([], 3), (["--topic", scene.topic], 1), (["--topic", other.topic], 2):
            done = tools.run("lag", "--once", "--json", "--group", scene.group, *topics)
            (group,) = json.loads(done.out)["groups"]
            assert len(group["partitions"]) == partitions
    finally:
        scene.close()


def test_watching_prints_after_every_interval_until_it_is_interrupted(fine: LagScene, bootstrap: str) -> None:
    options = ("--bootstrap-server", bootstrap, "--interval", "0.1", "--json", "--group", fine.group)
    process = subprocess.Popen(tool_command("lag", *options), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rounds = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    process.stdout.close()
    times = [each["time"] for each in rounds]
    assert times == sorted(times) and times[0] < times[-1]
    assert all(each["groups"][0]["group"] == fine.group for each in rounds)


def test_an_alert_is_sent_before_the_command_ends(behind: LagScene, tools: Tools) -> None:
    with Receiver() as receiver:
        done = tools.run("lag", *SHORT, "--group", behind.group, "--alert-webhook", receiver.url)
        assert done.code == 3
        (alert,) = receiver.accepted
    assert (alert["group"], alert["previous_status"], alert["status"]) == (behind.group, "OK", "STOP")
    assert alert["lag"] == 30 and "no members" in alert["reason"]
    assert alert["text"].startswith(f"Group {behind.group}: OK -> STOP.")
    assert len(alert["partitions"]) == 2


def test_a_missing_group_is_reported(tools: Tools) -> None:
    done = tools.run("lag", "--once", "--group", "missing")
    assert (done.code, done.err) == (1, "No group matches missing.\n")


def test_an_unreachable_cluster_is_reported() -> None:
    done = run_tool("lag", "--bootstrap-server", "127.0.0.1:1", "--once")
    assert done.code == 1
    assert "127.0.0.1:1" in done.err and "moldau doctor" in done.err
