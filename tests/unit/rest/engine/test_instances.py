"""Consumer instances and streaming reads share one limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from moldau.http.errors import ApiError
from moldau.rest.engine.instances import Instances
from moldau.rest.settings import RestSettings


def test_reservations_are_bounded_and_given_back() -> None:
    settings = RestSettings.from_properties(
        {"bootstrap.servers": "127.0.0.1:1", "consumer.instances.max": "2"}
    )
    with ThreadPoolExecutor(1) as pool:
        instances = Instances(settings, pool)
        with instances.reserve():
            with pytest.raises(ZeroDivisionError), instances.reserve():
                raise ZeroDivisionError
            with instances.reserve(), pytest.raises(ApiError) as refused, instances.reserve():
                pass
        assert refused.value.status == 503
        with instances.reserve(), instances.reserve():
            pass
