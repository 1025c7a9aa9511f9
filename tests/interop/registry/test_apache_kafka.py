"""The registry on Apache Kafka: topic, restart, several instances, a killed and a paused leader."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.harness.apache.node import ApacheCluster
from tests.harness.registry.instances import Instance, describe_group, instances
from tests.harness.registry.load import Load, verify
from tests.harness.waiting import eventually

pytestmark = pytest.mark.interop

#: The brokers' minimum of session timeouts.
SETTINGS = {"schema.compatibility.level": "NONE", "kafkagroup.session.timeout.ms": "6000"}


def settings_of(name: str) -> dict[str, str]:
    return {**SETTINGS, "kafkastore.topic": f"_schemas.{name}", "schema.registry.group.id": name}


def leader_of(apache: ApacheCluster, group: str, running: list[Instance]) -> Instance:
    def agreed() -> Instance | None:
        described = asyncio.run(describe_group(apache.bootstrap_servers, group))
        if described.members != len(running):
            return None
        return next((each for each in running if each.url in described.leaders), None)

    found = eventually(agreed, timeout=30, what="a leader")
    assert found is not None
    return found


def test_schemas_survive_a_restart(apache: ApacheCluster) -> None:
    settings = settings_of("restart")
    with instances(apache.bootstrap_servers, 1, settings) as [registry]:
        ids = [registry.register(f"s{number}", f'["null","{kind}"]').json["id"] for number, kind in KINDS]
        assert ids == [1, 2, 3]
        assert registry.ask("DELETE", "/subjects/s1").json == [1]
        registry.send_signal(signal.SIGTERM)
        assert registry.exit_code() == 0
    with instances(apache.bootstrap_servers, 1, settings) as [registry]:
        assert registry.ask("GET", "/subjects").json == ["s0", "s2"]
        assert registry.ask("GET", "/schemas/ids/3").json["schema"] == '["null","long"]'
        assert registry.register("s3", '"boolean"').json["id"] == 4


KINDS = list(enumerate(("int", "string", "long")))


def test_killed_and_paused_leaders_lose_nothing(apache: ApacheCluster) -> None:
    settings = settings_of("several")
    with instances(apache.bootstrap_servers, 3, settings) as running, Load(running) as load:
        first = leader_of(apache, "several", running)
        eventually(lambda: len(load.acknowledged) > 50, what="registrations")
        before = len(load.acknowledged)
        first.send_signal(signal.SIGKILL)
        eventually(lambda: len(load.acknowledged) > before + 10, every=0.01, what="registrations again")
        rest = [each for each in running if each is not first]
        second = leader_of(apache, "several", rest)
        second.send_signal(signal.SIGSTOP)
        [third] = [each for each in rest if each is not second]
        assert leader_of(apache, "several", [third]) is third
        second.send_signal(signal.SIGCONT)
        before = len(load.acknowledged)
        eventually(lambda: len(load.acknowledged) > before + 50, what="registrations again")
        assert leader_of(apache, "several", rest) is third
        load.__exit__()
        for each in rest:
            verify(load, each)
        assert "not fenced" not in "".join(each.log for each in running)
