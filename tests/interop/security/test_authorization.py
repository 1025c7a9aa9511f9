"""Every API of brokers, called by users without ACLs, with exactly the ACLs it needs, and with one too few.

Both brokers give the same answers, error code by error code; refusals are equal field by field.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.security.authorization.case import Variant, error_codes
from tests.harness.security.authorization.prepared import PreparedBroker, settings
from tests.harness.security.authorization_cases import VARIANTS
from tests.interop.conftest import Node
from tests.interop.differential.normal import Normal, differences

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


class Prepared(NamedTuple):
    broker: PreparedBroker
    normal: Normal


def _prepared(node: Node) -> Prepared:
    broker = PreparedBroker(node.bootstrap_servers, f"127.0.0.1:{node.controller_port}", VARIANTS)
    names = {topic_id: name for name, topic_id in broker.topic_ids.items()}
    return Prepared(broker, Normal(names, {node.port: "the broker", node.controller_port: "the controller"}))


@pytest.fixture(scope="module")
def pair(libs: Path) -> Iterator[tuple[Prepared, Prepared]]:
    config = settings(VARIANTS)
    apache_twice = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with ApacheCluster(libs=libs, config=config) as apache:
        other = ApacheCluster(libs=libs, config=config) if apache_twice else Cluster(config=config)
        with other as moldau:
            yield _prepared(apache), _prepared(moldau)


#: Refusals that have another form with Apache Kafka: it repeats the error of the request in every item.
_OTHER_FORM = ("AlterPartitionReassignments", "DescribeUserScramCredentials")
_REFUSALS = {29, 30, 31, 53, 65}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_requests_are_authorised_like_apache_kafka(variant: Variant, pair: tuple[Prepared, Prepared]) -> None:
    apache, moldau = pair
    if variant.case.share_assignment and not apache.broker.has_share_assignment:
        pytest.skip("Apache Kafka 4.3 assigns no partitions to share groups on a SASL listener")
    theirs, ours = apache.broker.response(variant), moldau.broker.response(variant)
    observed = [None if each is None else variant.case.observe(each) for each in (theirs, ours)]
    assert observed[1] == observed[0]
    if theirs is not None and _REFUSALS & set(error_codes(theirs)):
        _compare_fields(variant, apache.normal(theirs), moldau.normal(ours))


def _compare_fields(variant: Variant, theirs: Any, ours: Any) -> None:
    """A refused user learns the same from both: every field is equal except messages and new ids."""
    if variant.case.name.startswith(_OTHER_FORM):
        return
    free = ("error_message", "topic_id") if variant.case.name == "CreateTopics" else ("error_message",)
    found = [each for each in differences(theirs, ours) if not each.partition(": ")[0].endswith(free)]
    assert not found, "\n" + "\n".join(found)
