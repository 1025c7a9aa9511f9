"""Every API authorises as Apache Kafka does: no rights, exactly the rights, one right too few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER, CONTROLLER
from tests.harness.security.authorization.case import Variant
from tests.harness.security.authorization.prepared import PreparedBroker, settings
from tests.harness.security.authorization_cases import CASES, VARIANTS
from tests.integration.conftest import new_node, runs_apache


@pytest.fixture(scope="module")
def broker() -> Iterator[PreparedBroker]:
    with new_node(config=settings(VARIANTS)) as node:
        yield PreparedBroker(node.bootstrap_servers, f"127.0.0.1:{node.controller_port}", VARIANTS)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_requests_are_authorised(broker: PreparedBroker, variant: Variant) -> None:
    if variant.case.share_assignment and not broker.has_share_assignment and runs_apache():
        pytest.skip("Apache Kafka 4.3 assigns no partitions to share groups on a SASL listener")
    assert broker.outcome(variant) == variant.expected


@pytest.mark.parametrize("role", [BROKER, CONTROLLER])
def test_every_api_has_a_case(role: str) -> None:
    named = {case.name.split()[0] for case in CASES if case.controller == (role == CONTROLLER)}
    missing = {each.api.name for each in served_apis(role).values()} - named
    # Users and tokens are the same on both listeners; a login consists of SaslAuthenticate requests.
    assert {name for name in missing if "DelegationToken" not in name and "Scram" not in name} == {
        "SaslAuthenticate"
    }
