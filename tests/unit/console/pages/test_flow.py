"""The layout of pictures of flows."""

from __future__ import annotations

from typing import Any

from moldau.console.pages.flow import MAX_NODES, Node, picture


def nodes(*names: str) -> list[Node]:
    return [Node(each, each) for each in names]


def columns(found: dict[str, Any] | None) -> dict[str, int]:
    """Return the number of each node's column."""
    assert found is not None
    places = sorted({each["x"] for each in found["nodes"]})
    return {each["name"]: places.index(each["x"]) for each in found["nodes"]}


def test_a_node_is_right_of_all_that_lead_to_it() -> None:
    edges = [
        ("orders", "s0"),
        ("s0", "repartition"),
        ("repartition", "s1"),
        ("rates", "s1"),
        ("s1", "changelog"),
    ]
    found = picture(nodes("s1", "changelog", "orders", "s0", "repartition", "rates"), edges)
    assert columns(found) == {"orders": 0, "rates": 0, "s0": 1, "repartition": 2, "s1": 3, "changelog": 4}
    assert found is not None and len(found["edges"]) == 5
    assert {"orders to s0", "s1 to changelog"} < {each["name"] for each in found["edges"]}
    width, height = found["box"]
    for each in found["nodes"]:
        assert 0 <= each["x"] <= found["width"] - width and 0 <= each["y"] <= found["height"] - height


def test_nodes_do_not_overlap() -> None:
    found = picture(nodes(*"abcdef"), [("a", each) for each in "bcdef"])
    assert found is not None
    places = [(each["x"], each["y"]) for each in found["nodes"]]
    assert len(set(places)) == 6


def test_an_application_that_writes_what_it_reads_is_drawn() -> None:
    found = picture(nodes("orders", "app"), [("orders", "app"), ("app", "orders"), ("app", "app")])
    assert columns(found) == {"orders": 0, "app": 1}
    assert found is not None and len(found["edges"]) == 3


def test_the_same_topic_is_one_node_and_long_names_are_shortened() -> None:
    name = "a-topic-with-a-name-that-is-much-too-long-for-its-box"
    found = picture([*nodes(name, name), Node("x", "x")], [(name, "x"), (name, "gone")])
    assert found is not None and len(found["nodes"]) == 2
    (first,) = (each for each in found["nodes"] if each["name"] == name)
    assert len(first["node"].label) <= 28 and first["node"].label.startswith("a-topic")


def test_nothing_and_too_much_are_not_drawn() -> None:
    assert picture([], []) is None
    assert picture([Node(str(each), "x") for each in range(MAX_NODES + 1)], []) is None
