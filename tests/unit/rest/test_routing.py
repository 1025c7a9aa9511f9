"""Routes: literal segments before variables, methods, encoded names."""

from __future__ import annotations

import pytest

from moldau.http.errors import ApiError
from moldau.rest.routes import routes
from moldau.rest.routing import Router
from moldau.rest.settings import RestSettings

ROUTES = routes(RestSettings.from_properties({"bootstrap.servers": "k:9092"}))
ROUTER = Router(ROUTES)


@pytest.mark.parametrize(
    ("method", "path", "route", "params"),
    [
        ("GET", "/topics/a%2Fb", "/topics/{topic_name}", {"topic_name": "a/b"}),
        ("HEAD", "/topics/", "/topics", {}),
        ("GET", "/v3/clusters/c/topics/-/configs", "/v3/clusters/{cluster_id}/topics/-/configs", {}),
        (
            "GET",
            "/v3/clusters/c/topics/-/partitions/-/reassignment",
            "/v3/clusters/{cluster_id}/topics/-/partitions/-/reassignment",
            {},
        ),
        (
            "GET",
            "/v3/clusters/c/topics/-/partitions",
            "/v3/clusters/{cluster_id}/topics/{topic_name}/partitions",
            {"topic_name": "-"},
        ),
        ("POST", "/v3/clusters/c/acls:batch", "/v3/clusters/{cluster_id}/acls:batch", {}),
    ],
)
def test_found_route(method: str, path: str, route: str, params: dict[str, str]) -> None:
    found, variables = ROUTER.find(method, path)
    assert found.path == route
    assert {name: variables[name] for name in params} == params


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/v3", 404), ("PUT", "/topics", 405), ("POST", "/v3/clusters", 405)],
)
def test_no_route(method: str, path: str, status: int) -> None:
    with pytest.raises(ApiError) as refused:
        ROUTER.find(method, path)
    assert refused.value.status == status


def test_each_method_and_path_has_one_route() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
