"""What the function of a pipeline may return."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.runtime.definition import BadDefinition
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline


class Started:
    """A query that the function has started itself."""

    def awaitTermination(self) -> None: ...


@pytest.mark.parametrize("result", [Started(), [Started()], iter([Started()])])
def test_started_query_is_refused_with_available_now(result: Any) -> None:
    def function() -> Any:
        return result

    endless = Pipeline("mine", function, trigger_of_run={"availableNow": True})
    with pytest.raises(BadDefinition, match=r"mine returns queries .* omit --available-now"):
        endless.start(object(), Context("", ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [42, "text", None])
def test_other_results_are_refused(result: Any) -> None:
    def function() -> Any:
        return result

    with pytest.raises(BadDefinition, match=f"returns {type(result).__name__}; it must return a data frame"):
        Pipeline("mine", function).start(object(), Context("", ""))  # type: ignore[arg-type]
