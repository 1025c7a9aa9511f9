"""Settings that enable and disable endpoints."""

from __future__ import annotations

import pytest

from moldau.config.definition import ConfigError
from moldau.rest.access import names_of, served
from moldau.rest.openapi.routes import API_ROUTES
from moldau.rest.settings import RestSettings

HANDLERS = {(route.method, route.path): route.handler for route in API_ROUTES}


def enabled(**properties: str) -> set[str]:
    """Return the names of the endpoints that serve requests."""
    settings = RestSettings.from_properties(
        {"bootstrap.servers": "k:9092", **{name.replace("_", "."): text for name, text in properties.items()}}
    )
    return {
        names_of(route)[0]
        for route in served(API_ROUTES, settings)
        if route.handler is HANDLERS[route.method, route.path]
    }


ALL = enabled()


def test_every_route_has_a_name_of_its_version() -> None:
    for route in API_ROUTES:
        assert all(name.startswith(f"api.{route.version}.") for name in names_of(route))
    assert {"api.v2.produce-to-topic.*", "api.v3.acls.batch-create", "api.v3.cluster-configs.alter"} <= ALL


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_version_is_switched_off(version: str) -> None:
    left = enabled(**{f"api_{version}_enable": "false"})
    assert left == {name for name in ALL if not name.startswith(f"api.{version}.")}


def test_allow_list_and_block_list() -> None:
    assert enabled(api_endpoints_allowlist="api.v3.topics.list, api.v3.clusters.*") == {
        "api.v3.topics.list",
        "api.v3.clusters.list",
        "api.v3.clusters.get",
    }
    blocked = {"api.v3.acls.list", "api.v3.acls.create", "api.v3.acls.batch-create", "api.v3.acls.delete"}
    assert enabled(api_endpoints_blocklist="api.v3.acls.*") == ALL - blocked
    both = enabled(
        api_endpoints_allowlist="api.v3.topics.*",
        api_endpoints_blocklist="api.v3.topics.delete,api.v3.topics.create,api.v3.topics.partitions",
    )
    assert both == {"api.v3.topics.list", "api.v3.topics.get"}


@pytest.mark.parametrize("name", ["api.v3.topics.lsit", "api.v2.produce-to-topic.json", "topics"])
def test_names_of_no_endpoint_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"api\.endpoints\.blocklist: There is no such endpoint"):
        enabled(api_endpoints_blocklist=f"api.v3.acls.*,{name}")
