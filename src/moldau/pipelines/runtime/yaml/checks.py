"""The checks of a YAML file: what is expected, what happens to rows that fail, and how many may."""

from __future__ import annotations

from typing import cast

from moldau.pipelines.runtime.definition import ON_FAIL, AtMost, Check, Definition, OnFail
from moldau.pipelines.runtime.thresholds import at_most_of
from moldau.pipelines.runtime.yaml.sections import Section

#: The keys of a check.
CHECK = ("name", "expect", "on_fail", "at_most")


def check_of(section: Section) -> Check:
    """An expectation of rows."""
    on_fail = cast(OnFail, section.choice("on_fail", ON_FAIL, "fail"))
    return Check(section.needed("name"), section.needed("expect"), on_fail, _at_most(section, on_fail))


def _at_most(section: Section, on_fail: OnFail) -> AtMost | None:
    text = section.text("at_most")
    if text is None:
        return None
    if on_fail == "fail":
        section.fail(
            "on_fail 'fail' stops at the first row; at_most is for drop, dead_letter and warn",
            section.node("at_most"),
        )
    limit = at_most_of(text)
    if limit is None:
        section.fail(
            f"'{text}' is neither a number of rows nor a share, such as 20 or 5%", section.node("at_most")
        )
    return limit


def require_names_and_letters(section: Section, definition: Definition) -> None:
    """Checks have names of their own, and what they turn away has a place to go."""
    everything = definition.all_checks
    names = [check.name for check in everything]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        section.fail(f"two checks are named '{twice}'; they are counted by their names")
    wanting = next((check for check in everything if check.on_fail == "dead_letter"), None)
    if wanting is not None and definition.dead_letter is None:
        section.fail(f"the check '{wanting.name}' needs the key 'dead_letter', the topic for what fails it")
    if definition.dead_letter is not None and not definition.source.is_topic:
        section.fail(
            "dead_letter is for records of topics, and the source reads none", section.node("dead_letter")
        )
