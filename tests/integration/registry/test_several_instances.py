"""Several instances on one cluster: one leads, followers forward, no id is lost or given twice."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator

import pytest

from moldau.base.errors import KafkaError
from moldau.client.admin.client import AdminClient
from moldau.testing import Cluster
from tests.harness.registry.instances import (
    DISCONNECTED,
    Described,
    Instance,
    describe_group,
    instances,
    ports,
)
from tests.harness.registry.load import Load, verify
from tests.harness.registry.relay import Relay
from tests.harness.waiting import eventually

#: Short sessions, so that the tests are: the brokers' minimum is 6 seconds.
SESSION_MS = 1500
SETTINGS = {
    "schema.compatibility.level": "NONE",
    "kafkagroup.session.timeout.ms": str(SESSION_MS),
    "kafkagroup.heartbeat.interval.ms": "200",
    "kafkastore.timeout.ms": "1000",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"group.min.session.timeout.ms": 500}) as cluster:
        yield cluster


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """A topic and a group of their own for each test."""
    name = request.node.name
    return {**SETTINGS, "kafkastore.topic": f"_schemas.{name}", "schema.registry.group.id": name}


def group(cluster: Cluster, settings: dict[str, str]) -> Described:
    return asyncio.run(describe_group(cluster.bootstrap_servers, settings["schema.registry.group.id"]))


def leader_of(cluster: Cluster, settings: dict[str, str], running: list[Instance]) -> Instance:
    """Wait until all running instances agree on a leader."""

    def agreed() -> Instance | None:
        described = group(cluster, settings)
        if described.members != len(running) or len(described.leaders) != 1:
            return None
        return next((each for each in running if each.url in described.leaders), None)

    found = eventually(agreed, timeout=20, what="a leader")
    assert found is not None
    return found


def test_one_leads_and_every_instance_takes_writes_and_shows_them(
    cluster: Cluster, settings: dict[str, str]
) -> None:
    with instances(cluster.bootstrap_servers, 3, settings) as running:
        leader_of(cluster, settings, running)
        for number in range(30):
            at, other = running[number % 3], running[(number + 1) % 3]
            registered = at.register("s", f'{{"type":"enum","name":"E{number}","symbols":["A"]}}').json
            assert registered["id"] == registered["version"] == number + 1
            assert at.ask("GET", "/subjects/s/versions/latest").json["version"] == number + 1
            assert other.ask("GET", "/subjects/s/versions/latest").json["version"] == number + 1
            assert other.ask("GET", f"/schemas/ids/{number + 1}").status == 200
        for number, at in enumerate(running):
            assert at.ask("DELETE", f"/subjects/s/versions/{number + 1}").json == number + 1
            shown = [each.ask("GET", "/subjects/s/versions").json[0] for each in running]
            assert shown == [number + 2] * 3


def test_killed_leader_loses_and_doubles_nothing(cluster: Cluster, settings: dict[str, str]) -> None:
    patient = {**settings, "kafkagroup.session.timeout.ms": "30000"}
    with instances(cluster.bootstrap_servers, 3, patient) as running, Load(running) as load:
        leader = leader_of(cluster, settings, running)
        eventually(lambda: len(load.acknowledged) > 100, what="registrations")
        killed_at, before = time.monotonic(), len(load.acknowledged)
        leader.send_signal(signal.SIGKILL)
        rest = [each for each in running if each is not leader]
        eventually(lambda: len(load.acknowledged) > before + 20, every=0.005, what="registrations again")
        # A refused connection shows that the leader has ended: its session need not expire.
        assert time.monotonic() - killed_at < 20
        eventually(lambda: len(load.acknowledged) > before + 200, what="registrations again")
        load.__exit__()
        for each in rest:
            verify(load, each)
        assert leader_of(cluster, settings, rest) is not leader


def test_paused_leader_is_fenced(cluster: Cluster, settings: dict[str, str]) -> None:
    with instances(cluster.bootstrap_servers, 3, settings) as running:
        leader = leader_of(cluster, settings, running)
        rest = [each for each in running if each is not leader]
        with Load(running, clients=3) as load:
            eventually(lambda: len(load.acknowledged) > 50, what="registrations")
            leader.send_signal(signal.SIGSTOP)
            eventually(
                lambda: (
                    group(cluster, settings).leaders.isdisjoint([leader.url, ""])
                    and group(cluster, settings).members == 2
                ),
                what="another leader",
            )
            before = len(load.acknowledged)
            assert rest[0].register("meanwhile", '"string"').status == 200
            leader.send_signal(signal.SIGCONT)
            eventually(lambda: len(load.acknowledged) > before + 50, what="registrations again")
        assert leader_of(cluster, settings, running) is not leader
        for each in running:
            verify(load, each)
        assert leader.ask("GET", "/subjects/meanwhile/versions").json == [1]


def test_leader_cut_off_from_kafka_is_fenced(settings: dict[str, str]) -> None:
    extra: dict[str, str | int | bool] = {"group.min.session.timeout.ms": 500}
    with Cluster(node_config={1: extra}) as own, ports(2) as [relayed, listen]:
        plain, controller = own.port, own.controller_port
        addresses = f"PLAINTEXT://127.0.0.1:{plain},RELAYED://127.0.0.1:"
        extra["listeners"] = f"{addresses}{relayed},CONTROLLER://127.0.0.1:{controller}"
        extra["advertised.listeners"] = f"{addresses}{listen}"
        extra["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT,CONTROLLER:PLAINTEXT"
        own.restart(1)
        with (
            Relay(listen, relayed) as relay,
            instances(f"127.0.0.1:{listen}", 1, settings) as [leader],
        ):
            assert leader_of(own, settings, [leader]) is leader
            with instances(own.bootstrap_servers, 1, settings) as [other], Load([leader, other], 3) as load:
                eventually(lambda: len(load.acknowledged) > 50, what="registrations")
                relay.cut()
                eventually(lambda: group(own, settings).leaders == {other.url}, what="the other one leads")
                before = len(load.acknowledged)
                eventually(lambda: len(load.acknowledged) > before + 20, what="registrations again")
                assert set(load.refused) <= {50001, 50002, 50003, 50004}
                # Held writes of the former leader arrive now, and must not be stored.
                relay.heal()
                assert leader_of(own, settings, [leader, other]) is other
                before = len(load.acknowledged)
                eventually(lambda: len(load.acknowledged) > before + 20, what="registrations at both")
                load.__exit__()
                for each in (leader, other):
                    verify(load, each)


def test_killed_broker_loses_and_doubles_nothing(settings: dict[str, str]) -> None:
    config: dict[str, str | int | bool] = {"group.min.session.timeout.ms": 500, "min.insync.replicas": 2}
    topic = settings["kafkastore.topic"]
    with (
        Cluster(brokers=3, config=config) as own,
        instances(own.bootstrap_servers, 2, {**settings, "kafkastore.timeout.ms": "10000"}) as running,
        Load(running) as load,
    ):
        eventually(lambda: len(load.acknowledged) > 30, what="registrations")
        with AdminClient(own.bootstrap_servers) as admin:
            described = admin.describe_topics([topic])[topic]
        assert not isinstance(described, KafkaError)
        before = len(load.acknowledged)
        own.kill(described.partitions[0].leader)
        eventually(lambda: len(load.acknowledged) > before + 50, what="registrations again")
        load.__exit__()
        for each in running:
            verify(load, each)


def test_instances_that_are_not_eligible_never_lead(cluster: Cluster, settings: dict[str, str]) -> None:
    follower = {**settings, "leader.eligibility": "false"}
    older = {**settings, "master.eligibility": "false"}
    with (
        instances(cluster.bootstrap_servers, 1, {**follower, "kafkastore.timeout.ms": "500"}) as [first],
        instances(cluster.bootstrap_servers, 1, older) as [second],
    ):
        eventually(lambda: group(cluster, settings).members == 2, what="two members")
        assert group(cluster, settings).leaders == frozenset()
        refused = second.register("s", '"string"')
        assert (refused.status, refused.json["error_code"]) == (500, 50004)
        assert first.ask("GET", "/subjects").json == []
        with instances(cluster.bootstrap_servers, 1, settings) as [eligible]:
            assert leader_of(cluster, settings, [first, second, eligible]) is eligible
            assert first.register("s", '"string"').status == 200


def test_two_instances_with_one_url_are_refused(cluster: Cluster, settings: dict[str, str]) -> None:
    same = {**settings, "host.name": "registry.example", "host.port": "8081"}
    with instances(cluster.bootstrap_servers, 1, same) as [first], ports(1) as [port]:
        leader = eventually(lambda: group(cluster, settings).leaders, what="a leader")
        assert leader == {"http://registry.example:8081"}
        second = Instance(cluster.bootstrap_servers, port, same)
        try:
            assert second.exit_code() == 1
            assert "announce the URL http://registry.example:8081" in second.log
        finally:
            second.close()
        eventually(lambda: first.register("s", '"string"').status == 200, what="the first one still writes")


def test_leader_that_stops_hands_over_at_once(cluster: Cluster, settings: dict[str, str]) -> None:
    slow = {**settings, "kafkagroup.session.timeout.ms": "30000"}
    with instances(cluster.bootstrap_servers, 2, slow) as running:
        leader = leader_of(cluster, settings, running)
        [other] = [each for each in running if each is not leader]
        assert leader.register("s", '"string"').status == 200
        leader.send_signal(signal.SIGTERM)
        assert leader.exit_code() == 0
        eventually(lambda: _answers(other), every=0.01, timeout=20, what="the other instance leads")


def _answers(instance: Instance) -> bool:
    try:
        return instance.register("s", '"int"').status == 200
    except DISCONNECTED:
        return False


def test_unconfirmed_write_is_answered_as_such(settings: dict[str, str]) -> None:
    quick = {**settings, "kafkastore.timeout.ms": "1000", "kafkagroup.session.timeout.ms": "6000"}
    with Cluster() as own, instances(own.bootstrap_servers, 1, quick) as [alone]:
        assert alone.register("s", '"string"').status == 200
        own.pause(1)
        try:
            begun = time.monotonic()
            unknown = alone.register("s", '"int"')
            assert (unknown.status, unknown.json["error_code"]) == (500, 50002)
            assert "not confirmed" in unknown.json["message"]
            assert time.monotonic() - begun < 10
        finally:
            own.resume(1)
        eventually(lambda: alone.register("s", '"int"').status == 200, what="writes again")
        assert alone.ask("GET", "/subjects/s/versions").json == [1, 2]
