from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.process import STOP_WITH_INPUT, overrides

_SERVER = """
import signal, sys
from moldau.cli.shared.arguments import ToolParser
from moldau.cli.shared.process import add_process_options, start_stop_watcher
parser = ToolParser("server", "A server.")
add_process_options(parser)
start_stop_watcher(parser.parse(sys.argv[1:]))
print("ready", flush=True)
signal.pause()
"""


def test_overrides_may_be_empty_and_contain_equals_signs() -> None:
    assert overrides(["a=1", "b=", " c = x=y "]) == {"a": "1", "b": "", "c": "x=y"}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(UsageError, match="property=value"):
        overrides([word])


def test_a_supervised_process_ends_with_its_supervisor() -> None:
    command = [sys.executable, "-c", _SERVER, STOP_WITH_INPUT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        server.stdin.close()
        assert server.wait(10) == -signal.SIGTERM
