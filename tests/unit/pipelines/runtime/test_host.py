"""A pipeline whose function fails."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from moldau.pipelines.runtime.host import Hosted
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline
from moldau.pipelines.runtime.restarts import Policy
from moldau.pipelines.runtime.state import Status


def hosted(error: Exception) -> Hosted:
    def function() -> Any:
        raise error

    return Hosted(Pipeline("mine", function), Status("mine"), Context("", ""), Policy(tries=2))


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError("no pandas"), ZeroDivisionError(), NameError("x"), AssertionError("y")]
)
def test_failing_function_is_retried_a_limited_number_of_times(error: Exception) -> None:
    pipeline = hosted(error)
    pipeline.tick(object(), 1.0)  # type: ignore[arg-type]
    assert pipeline.status.state == "waiting"
    pipeline.tick(object(), 100.0)  # type: ignore[arg-type]
    assert pipeline.status.state == "failed"


def test_lost_jvm_ends_the_driver() -> None:
    with pytest.raises(Py4JNetworkError):
        hosted(Py4JNetworkError("gone")).tick(object(), 1.0)  # type: ignore[arg-type]
