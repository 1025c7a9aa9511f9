"""Identity policy, both directions, exactly once, ACLs, and poison records."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from moldau.client.admin.client import checked
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigResource, ResourceType
from moldau.client.admin.topic_types import NewTopic
from tests.harness.mirror import Feed, MirrorProcess, mm2_properties, produce, read_all, values_of
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import Pair

IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


def test_both_directions_do_not_loop(pair: Pair, tmp_path: Path) -> None:
    settings = {"r->q.enabled": "true", "q->r.topics": "both.*", "r->q.topics": "both.*"}
    properties = mm2_properties(pair.a, pair.b, settings, source="q", target="r")
    for admin in (pair.admin_a, pair.admin_b):
        checked(admin.create_topics([NewTopic("both", 1)]))
    with MirrorProcess(tmp_path, properties) as mirror:
        produce(pair.a, "both", ["from q"])
        produce(pair.b, "both", ["from r"])
        eventually(lambda: "q.both" in pair.admin_b.list_topics() and "r.both" in pair.admin_a.list_topics())
        eventually(lambda: values_of(pair.b, "q.both") == ["from q"], what=mirror.log[-2000:])
        eventually(lambda: values_of(pair.a, "r.both") == ["from r"], what=mirror.log[-2000:])
        produce(pair.a, "both", ["second"])
        eventually(lambda: values_of(pair.b, "q.both") == ["from q", "second"])
    names = {*pair.admin_a.list_topics(), *pair.admin_b.list_topics()}
    assert not {"q.r.both", "r.q.both", "q.r.heartbeats", "r.q.heartbeats", "q.r.q.heartbeats"} & names


def test_identity_policy_keeps_names(pair: Pair, tmp_path: Path) -> None:
    settings = {"i->j.topics": "same", **IDENTITY}
    properties = mm2_properties(pair.a, pair.b, settings, source="i", target="j")
    checked(pair.admin_a.create_topics([NewTopic("same", 1)]))
    produce(pair.a, "same", ["1", "2"])
    with MirrorProcess(tmp_path, properties) as mirror:
        eventually(lambda: "same" in pair.admin_b.list_topics())
        eventually(lambda: values_of(pair.b, "same") == ["1", "2"], what=mirror.log[-2000:])
        eventually(lambda: "i.heartbeats" in pair.admin_b.list_topics())


def test_exactly_once_repeats_nothing_after_kill_9(pair: Pair, tmp_path: Path) -> None:
    settings = {"e->f.topics": "once", "exactly.once.source.support": "enabled"}
    properties = mm2_properties(pair.a, pair.b, settings, source="e", target="f")
    checked(pair.admin_a.create_topics([NewTopic("once", 1)]))
    feed = Feed(pair.a, "once")

    def arrived(count: int) -> bool:
        return "e.once" in pair.admin_b.list_topics() and len(read_all(pair.b, "e.once")) >= count

    mirror = MirrorProcess(tmp_path, properties).start()
    try:
        for copied_before in (50, 1000):
            eventually(partial(arrived, copied_before), what=mirror.log[-2000:])
            mirror.kill()
            mirror.start()
        produced = feed.stop()
        eventually(lambda: len(values_of(pair.b, "e.once")) >= len(produced), what=mirror.log[-2000:])
    finally:
        feed.stop()
        mirror.kill()
    assert values_of(pair.b, "e.once") == produced


def test_a_record_that_the_target_refuses_stops_its_partition_only(pair: Pair, tmp_path: Path) -> None:
    settings = {"p->s.topics": "poison, healthy", "sync.topic.configs.enabled": "false"}
    properties = mm2_properties(pair.a, pair.b, settings, source="p", target="s")
    checked(pair.admin_a.create_topics([NewTopic("poison", 1), NewTopic("healthy", 1)]))
    checked(pair.admin_b.create_topics([NewTopic("p.poison", 1, configs={"max.message.bytes": "1000"})]))
    with MirrorProcess(tmp_path, properties) as mirror:
        produce(pair.a, "poison", ["good", "x" * 5000])
        produce(pair.a, "healthy", ["1"])
        eventually(lambda: "raise max.message.bytes" in mirror.log, what=mirror.log[-2000:])
        produce(pair.a, "healthy", ["2"])
        eventually(lambda: values_of(pair.b, "p.healthy")[-1:] == ["2"], what=mirror.log[-2000:])
        change = [AlterConfig("max.message.bytes", AlterOperation.SET, "100000")]
        resource = ConfigResource(ResourceType.TOPIC, "p.poison")
        checked(pair.admin_b.incremental_alter_configs({resource: change}))
        mirror.stop()
        mirror.start()
        eventually(lambda: "x" * 5000 in values_of(pair.b, "p.poison"), what=mirror.log[-2000:])
    assert list(dict.fromkeys(values_of(pair.b, "p.poison"))) == ["good", "x" * 5000]
