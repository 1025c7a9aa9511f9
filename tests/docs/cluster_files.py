"""The properties files under `examples`, with ports and ids that are unique on this machine."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

from moldau.local.ports import ReservedPorts
from tests.docs.markdown import ROOT

NODES = (1, 2, 3)
_PORTS = ReservedPorts("127.0.0.1")


def free_ports() -> int:
    """Return the first of three consecutive free ports; the ports 10,000 above them are free, too."""
    return _PORTS.choose([number + distance for number in range(3) for distance in (0, 10_000)])


def with_ports(text: str, first: int) -> str:
    """Replace the ports 9092 to 9094 and 19092 to 19094 of a text."""

    def other(match: re.Match[str]) -> str:
        return f"{match[1]}{first + int(match[3]) - 2 + (10_000 if match[2] else 0)}"

    return re.sub(r"(localhost:|port )(1?)909([234])", other, text)


class Files:
    """A copy of the example whose name is that of the folder."""

    def __init__(self, folder: Path, first_port: int) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "examples" / folder.name, folder)
        begin = random.SystemRandom().randrange(10_000_000, 2**31 - 10)
        self.ids = [begin + number for number in NODES]
        for file in self.folder.glob("*.properties"):
            text = with_ports(file.read_text(), first_port)
            text = re.sub(
                r"(?m)(^node\.id=|voters=|,)([123])(@|$)", lambda m: f"{m[1]}{begin + int(m[2])}{m[3]}", text
            )
            file.write_text(text)
