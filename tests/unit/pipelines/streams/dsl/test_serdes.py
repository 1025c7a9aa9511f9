import pickle

import pytest

from moldau.pipelines.streams import Window, Windowed
from moldau.pipelines.streams.dsl.serdes import PICKLE


def test_pickled_state_with_the_old_module_name_of_windowed_keys_is_readable() -> None:
    key = Windowed("alice", Window(0, 60_000))
    now = pickle.dumps(key, protocol=2)
    stored = now.replace(b"moldau.pipelines.streams.dsl.serdes", b"moldau.pipelines.streams.serdes")
    assert stored != now
    assert PICKLE.deserialize("", stored) == key


def test_pickled_state_with_an_unknown_module_is_refused() -> None:
    stored = pickle.dumps(Windowed("alice", Window(0, 1)), protocol=2)
    stored = stored.replace(b"moldau.pipelines.streams.dsl.serdes", b"nowhere")
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        PICKLE.deserialize("", stored)
