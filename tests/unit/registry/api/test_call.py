from __future__ import annotations

import pytest

from moldau.http.errors import ApiError
from moldau.registry.api.call import Call, integer
from moldau.registry.state.registry import Registry, RegistrySettings


@pytest.mark.parametrize(
    ("query", "heavy"),
    [
        (b"format=resolved", True),
        (b"deleted=true&findTags=PII", True),
        (b"format=", False),
        (b"subjectPrefix=information-", False),
        (b"referenceFormat=qualified", False),
        (b"", False),
    ],
)
def test_only_queries_that_parse_a_schema_are_heavy(query: bytes, heavy: bool) -> None:
    assert Call({}, query, b"", None).is_heavy(Registry(RegistrySettings())) == heavy


@pytest.mark.parametrize("text", ["", "x", "1_0", " 1", "²", "١", "--1", "9" * 5000])
def test_other_texts_than_decimal_numbers_name_no_resource(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        integer(text)
    assert refused.value.status == 404
    assert (integer("12"), integer("-1")) == (12, -1)
