"""Find the nodes that run on this machine by their command lines, for `kafka-server-stop`.

A node is a Python process with the program `kafka-server-start`, `moldau server` or `moldau dev`; a shell,
an editor or a `grep` with these words as arguments is not. Node id and roles are read from the properties
file and the overrides of the command line.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from moldau.config.properties import PropertiesError, load_properties
from moldau.local.plan import FILE_NAME as CLUSTER_FILE

_START = "kafka-server-start"
_DEV = {"node.id": "1", "process.roles": "broker,controller"}
_MOLDAU = ("moldau", "moldau.cli.main")
#: Options with a value, of the interpreter and of our commands.
_WITH_VALUE = {"-X", "-W", "--override", "--set", "--port", "--data", "--brokers"}


@dataclass(frozen=True, slots=True)
class RunningNode:
    pid: int
    #: The arguments of the command, and the folder it was started in.
    arguments: tuple[str, ...]
    folder: Path
    is_dev: bool

    def matches(self, node_id: str | None, role: str | None) -> bool:
        if node_id is None and role is None:
            return True
        if self._is_supervisor():
            return False
        properties = self._properties()
        roles = [each.strip() for each in properties.get("process.roles", "").split(",")]
        own_id = properties.get("node.id", properties.get("broker.id"))
        return (node_id is None or own_id == node_id) and (role is None or role in roles)

    def _is_supervisor(self) -> bool:
        """Return whether this is `moldau dev` with several nodes, each a process of its own."""
        if not self.is_dev:
            return False
        return (self.folder / _option(self.arguments, "--data", "data") / CLUSTER_FILE).exists()

    def _properties(self) -> dict[str, str]:
        return {**(_DEV if self.is_dev else self._file()), **_settings(self.arguments)}

    def _file(self) -> dict[str, str]:
        try:
            return load_properties(str(self.folder / next(_positional(self.arguments), "")))
        except (OSError, PropertiesError):
            return {}


def running_nodes() -> list[RunningNode]:
    found = []
    for pid, words in _processes():
        command = _command(words)
        if command is not None and pid != os.getpid():
            arguments, is_dev = command
            found.append(RunningNode(pid, arguments, _folder_of(pid), is_dev))
    return found


def _command(words: Sequence[str]) -> tuple[tuple[str, ...], bool] | None:
    """Return the arguments of a node's command and whether it is `moldau dev`; None for other processes."""
    if len(words) < 2 or not Path(words[0]).name.lower().startswith("python"):
        return None
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        del rest[: 2 if rest[0] in _WITH_VALUE else 1]
    as_module = rest[:1] == ["-m"]
    program, *arguments = rest[as_module:] or [""]
    name = program if as_module else Path(program).name
    if name.removesuffix(".sh") == _START or name == "moldau.cli.kafka.server.command":
        return tuple(arguments), False
    if name not in _MOLDAU or not arguments:
        return None
    subcommand = arguments[0].removesuffix(".sh")
    if subcommand in (_START, _START.removeprefix("kafka-"), "server", "dev"):
        return tuple(arguments[1:]), subcommand == "dev"
    return None


def _positional(arguments: Sequence[str]) -> Iterator[str]:
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            yield word


def _option(arguments: Sequence[str], wanted: str, default: str) -> str:
    for option, following in pairwise([*arguments, ""]):
        name, equals, value = option.partition("=")
        if name == wanted:
            return value if equals else following
    return default


def _settings(arguments: Sequence[str]) -> dict[str, str]:
    found = {}
    for option, following in pairwise([*arguments, ""]):
        name, equals, value = option.partition("=")
        if name in ("--override", "--set"):
            key, _, text = (value if equals else following).partition("=")
            found[key.strip()] = text.strip()
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield all processes with their command lines, from /proc if it exists (a container may lack `ps`)."""
    if not Path("/proc/self/cmdline").exists():
        yield from _from_ps()
        return
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            yield int(entry.name), words[:-1]


def _from_ps() -> Iterator[tuple[int, list[str]]]:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, *words = line.split()
        yield int(pid), words


def _folder_of(pid: int) -> Path:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return Path.cwd()
