"""Reads of the store by threads: they change nothing, and what they keep is not out of date."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.registry.state.store import Store, Subject


def register(store: Store, subject: str, number: int) -> None:
    store.replay(
        b'{"keytype":"SCHEMA","subject":"%s","version":1,"magic":1}' % subject.encode(),
        b'{"subject":"%s","version":1,"id":%d,"schema":"\\"int\\"","deleted":false}'
        % (subject.encode(), number),
        0,
    )


class AddingOne(dict[str, Subject]):
    """Subjects to which the event loop adds one when a thread has read them all."""

    store: Store

    def __iter__(self) -> Iterator[str]:
        yield from list(super().__iter__())
        if "late" not in self:
            register(self.store, "late", 2)


def test_names_that_a_thread_has_sorted_before_a_change_are_not_kept() -> None:
    store = Store()
    subjects = AddingOne()
    subjects.store = store
    store.subjects = subjects
    register(store, "early", 1)
    assert list(store.subjects_with_prefix("")) == ["early"]
    assert list(store.subjects_with_prefix("")) == ["early", "late"]


def test_reading_the_ids_of_an_unknown_context_does_not_create_it() -> None:
    store = Store()
    assert store.id_space(".ctx").highest_id == 0
    assert store.id_spaces == {}
