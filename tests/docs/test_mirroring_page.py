"""The commands of docs/MIRRORING.md run, and its tables list every setting and option."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from moldau.cli.moldau.mirror import command, maker
from moldau.pipelines.mirror.config.definitions import SETTINGS
from moldau.testing import Cluster
from tests.docs.markdown import blocks, section
from tests.docs.shell import Shell
from tests.harness.waiting import eventually

PAGE = "docs/MIRRORING.md"
_SECOND = "localhost:9094"


def test_the_tutorial(tmp_path: Path) -> None:
    parts = blocks(section(PAGE, "Try it"))
    _, write, run, look = [each.text for each in parts if each.language == "sh"]
    (properties,) = [each.text for each in parts if each.language == "properties"]
    ready, status = [each.text for each in parts if each.language == "text"]
    with Cluster() as us, Cluster() as eu:
        shell = Shell(tmp_path, us.port)

        def here(text: str) -> str:
            return text.replace(_SECOND, f"localhost:{eu.port}")

        for line in write.splitlines():
            shell.run(line)
        (tmp_path / "mm2.properties").write_text(here(properties).replace("localhost:9092", shell.address))
        mirror = shell.open(run)
        assert mirror.stdout is not None
        try:
            assert mirror.stdout.readline() == ready
            lines = [here(line) for line in look.splitlines()]
            eventually(lambda: "orders-0      ok     300" in shell.run(f"{lines[0]} || true"))
            printed = [shell.run(lines[0]), shell.run(lines[1])]
            eventually(lambda: "us.orders" in shell.run(f"{lines[2]} || true"))
            moves = shell.run("moldau mirror failover mm2.properties --flow 'us->eu' --dry-run")
        finally:
            mirror.send_signal(signal.SIGTERM)
            assert mirror.wait(30) == 0
            mirror.stdout.close()
    assert _without_numbers(printed[0]) == _without_numbers(status)
    assert printed[1].splitlines()[-1] == "300"
    (shown,) = [each.text for each in blocks(section(PAGE, "Failover and failback"), "text")]
    assert moves.splitlines()[:2] == shown.splitlines()[:2]


def _without_numbers(text: str) -> list[list[str]]:
    """Return the words of the lines; times and the number of heartbeats depend on the run."""
    return [re.sub(r"[\d.]+", "N", line).split() for line in text.splitlines()]


def test_every_setting_is_listed_with_its_default() -> None:
    text = section(PAGE, "Settings")
    rows = {match[1]: match[2] for match in re.finditer(r"^\| `([^`]+)` \| (?:`([^`]+)`)? ?\|", text, re.M)}
    defaults = {
        name: setting.default.replace("org.apache.kafka.connect.mirror.", "") or None
        for name, setting in SETTINGS.items()
    }
    assert {name: rows.get(name) for name in defaults} == defaults


def test_every_option_is_listed() -> None:
    text = Path(__file__).parents[2].joinpath(PAGE).read_text()
    options = {
        name
        for parser in (maker._parser("connect-mirror-maker"), command._parser())
        for action in parser._actions
        for name in action.option_strings
        if name.startswith("--") and name not in ("--help", "--version")
    }
    assert {name for name in options if f"| `{name}" not in text} == set()
