"""Which endpoints the proxy serves, by Confluent's settings and with Confluent's names of endpoints.

A disabled endpoint answers GET with 404, other methods with 405. Moldau's own endpoints have names, too:
`api.v3.read.*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from moldau.config.definition import invalid_value
from moldau.http.errors import ApiError
from moldau.rest.request import Request, Response
from moldau.rest.routing import Route
from moldau.rest.settings import RestSettings

_CLUSTER: Final = "/v3/clusters/{cluster_id}"
_CONSUMER: Final = "/consumers/{group_name}/instances/{instance}"
_TOPIC: Final = "/topics/{topic_name}"
_PARTITION: Final = f"{_TOPIC}/partitions/{{partition_id}}"
_MEMBER: Final = "/consumer-groups/{consumer_group_id}/consumers/{consumer_id}"
_LAGS: Final = "/consumer-groups/{consumer_group_id}/lags"

_V2: Final = {
    "GET /": "root.get",
    "POST /": "root.post",
    "GET /topics": "topics.list",
    f"GET {_TOPIC}": "topics.get",
    f"POST {_TOPIC}": "produce-to-topic",
    f"GET {_TOPIC}/partitions": "partitions.list",
    f"GET {_PARTITION}": "partitions.get",
    f"GET {_PARTITION}/offsets": "partitions.get-offsets",
    f"POST {_PARTITION}": "produce-to-partition",
    "GET /brokers": "brokers.list",
    "POST /consumers/{group_name}": "consumers.create",
    f"DELETE {_CONSUMER}": "consumers.delete",
    f"POST {_CONSUMER}/subscription": "consumers.subscribe",
    f"GET {_CONSUMER}/subscription": "consumers.get-subscription",
    f"DELETE {_CONSUMER}/subscription": "consumers.unsubscribe",
    f"POST {_CONSUMER}/assignments": "consumers.assign",
    f"GET {_CONSUMER}/assignments": "consumers.get-assignments",
    f"GET {_CONSUMER}/records": "consumers.consume",
    f"POST {_CONSUMER}/offsets": "consumers.commit-offsets",
    f"GET {_CONSUMER}/offsets": "consumers.get-committed-offsets",
    f"POST {_CONSUMER}/positions": "consumers.seek-to-offset",
    f"POST {_CONSUMER}/positions/beginning": "consumers.seek-to-beginning",
    f"POST {_CONSUMER}/positions/end": "consumers.seek-to-end",
}
#: Without the path of the cluster.
_V3: Final = {
    "GET ": "clusters.get",
    "GET /brokers": "brokers.list",
    "GET /brokers/{broker_id}": "brokers.get",
    "GET /brokers/{broker_id}/partition-replicas": "replicas.search-by-broker",
    "GET /acls": "acls.list",
    "POST /acls": "acls.create",
    "POST /acls:batch": "acls.batch-create",
    "DELETE /acls": "acls.delete",
    "GET /brokers/-/configs": "brokers-configs.list",
    "GET /topics/-/configs": "topic-configs.list",
    "POST /topics/-/configs:alter": "topic-configs.alter-multi",
    f"GET {_TOPIC}/default-configs": "topic-configs.list-default",
    "GET /topics": "topics.list",
    "POST /topics": "topics.create",
    f"GET {_TOPIC}": "topics.get",
    f"PATCH {_TOPIC}": "topics.partitions",
    f"DELETE {_TOPIC}": "topics.delete",
    f"GET {_TOPIC}/partitions": "partitions.list",
    f"GET {_PARTITION}": "partitions.get",
    f"GET {_PARTITION}/offset": "partitions.list.offsets",
    f"GET {_PARTITION}/replicas": "replicas.list",
    f"GET {_PARTITION}/replicas/{{broker_id}}": "replicas.get",
    "GET /topics/-/partitions/-/reassignment": "partition-reassignments.list",
    f"GET {_TOPIC}/partitions/-/reassignment": "partition-reassignments.search-by-topic",
    f"GET {_PARTITION}/reassignment": "partition-reassignments.get",
    "GET /consumer-groups": "consumer-groups.list",
    "GET /consumer-groups/{consumer_group_id}": "consumer-groups.get",
    "GET /consumer-groups/{consumer_group_id}/consumers": "consumers.list",
    f"GET {_MEMBER}": "consumers.get",
    f"GET {_MEMBER}/assignments": "consumer-assignments.list",
    f"GET {_MEMBER}/assignments{_PARTITION.removeprefix('/topics')}": "consumer-assignments.get",
    "GET /consumer-groups/{consumer_group_id}/lag-summary": "consumer-group-lag-summary.get",
    f"GET {_LAGS}": "consumer-lags.list",
    f"GET {_LAGS}{_PARTITION.removeprefix('/topics')}": "consumer-lags.get",
    f"POST {_TOPIC}/records": "produce.produce-to-topic",
    f"POST {_TOPIC}/records:batch": "batch-produce.produce-to-topic",
    f"GET {_TOPIC}/records": "read.topic",
    f"GET {_PARTITION}/records": "read.partition",
    "GET /consumer-groups/{consumer_group_id}/records": "read.group",
    "POST /consumer-groups/{consumer_group_id}/offsets": "read.commit-offsets",
    **{
        f"{method} {path}{suffix}": f"{group}.{name}"
        for group, path in (
            ("cluster-configs", "/broker-configs"),
            ("broker-configs", "/brokers/{broker_id}/configs"),
            ("topic-configs", f"{_TOPIC}/configs"),
        )
        for method, suffix, name in (
            ("GET", "", "list"),
            ("POST", ":alter", "alter"),
            ("GET", "/{name}", "get"),
            ("PUT", "/{name}", "update"),
            ("DELETE", "/{name}", "delete"),
        )
    },
}
_NAMES: Final = {
    "GET /v3/clusters": "api.v3.clusters.list",
    **{route: f"api.v2.{name}" for route, name in _V2.items()},
    **{route.replace(" ", f" {_CLUSTER}", 1): f"api.v3.{name}" for route, name in _V3.items()},
}


def names_of(route: Route) -> tuple[str, str]:
    """Return the name of a route and of its group; producing with v2 has the group's name for all formats."""
    name = _NAMES[f"{route.method} {route.path}"]
    if name == "api.v3.partitions.list.offsets":
        return name, "api.v3.partition-offsets.*"
    if name.startswith("api.v2.produce-to-"):
        return f"{name}.*", f"{name}.*"
    return name, f"{name.rpartition('.')[0]}.*"


def served(routes: Iterable[Route], settings: RestSettings) -> Iterator[Route]:
    """Yield the routes of the enabled versions; those that are disabled refuse all requests.

    `ConfigError` if the settings name an endpoint that does not exist.
    """
    routes = tuple(routes)
    known = {name for route in routes for name in names_of(route)}
    for setting, names in (
        ("api.endpoints.allowlist", settings.allowed),
        ("api.endpoints.blocklist", settings.blocked),
    ):
        for name in sorted(names - known):
            raise invalid_value(
                setting, name, "There is no such endpoint. Formats of v2 cannot be chosen one by one."
            )
    for route in routes:
        if settings.v3_enabled if route.version == "v3" else settings.v2_enabled:
            names = frozenset(names_of(route))
            is_allowed = not settings.allowed or bool(names & settings.allowed)
            yield route if is_allowed and not names & settings.blocked else replace(route, handler=_refuse)


async def _refuse(request: Request) -> Response:
    if request.scope["method"] in ("GET", "HEAD"):
        raise ApiError(404, 404, "HTTP 404 Not Found")
    raise ApiError(405, 405, "HTTP 405 Method Not Allowed")
