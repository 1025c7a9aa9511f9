"""JSON pointers."""

from __future__ import annotations

from moldau.pipelines.connect.connectors.http.pointers import at_pointer


def test_values_at_pointers() -> None:
    document = {"a": [{"b/c": 1}, {"~": 2}], "": 3}
    assert at_pointer(document, "") is document
    assert at_pointer(document, "/a/0/b~1c") == 1
    assert at_pointer(document, "/a/1/~0") == 2
    assert at_pointer(document, "/") == 3
    assert at_pointer(document, "/a/9/x") is None
    assert at_pointer(document, "/a/b") is None
