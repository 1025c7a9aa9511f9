"""The real Prometheus: `promtool`, and a server with rules.

`make prometheus` puts both programs beside the interpreter where the machine allows it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.local.ports import ReservedPorts

_FOLDERS = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
_PROMETHEUS, _PROMTOOL = (shutil.which(name, path=_FOLDERS) for name in ("prometheus", "promtool"))
needs_prometheus = pytest.mark.skipif(
    _PROMETHEUS is None or _PROMTOOL is None, reason="Prometheus is not installed: make prometheus"
)
#: The names of rules that fire for a set of labels; empty if the alert does not have the label.
Firing = tuple[str, str]


def promtool(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    assert _PROMTOOL is not None
    return subprocess.run([_PROMTOOL, *words], input=given, capture_output=True, timeout=60, check=False)


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self, label: str = "topic") -> set[Firing]:
        """Return the alerts that fire, with the value of a label."""
        alerts = self._get("alerts")["alerts"]
        return {_firing(each["labels"], label) for each in alerts if each["state"] == "firing"}

    def fired(self, seconds: float) -> set[Firing]:
        """Return the alerts that fired within the last seconds, with their topics."""
        query = f'max_over_time(ALERTS{{alertstate="firing"}}[{round(seconds * 1000)}ms])'
        found = self._get(f"query?query={urllib.parse.quote(query)}")["result"]
        return {_firing(each["metric"], "topic") for each in found}

    def evaluated_at(self) -> float:
        """Return the time until which all rules were evaluated."""
        groups = self._get("rules")["groups"]
        return min(datetime.fromisoformat(each["lastEvaluation"]).timestamp() for each in groups)

    def healthy_targets(self) -> int:
        try:
            return sum(each["health"] == "up" for each in self._get("targets")["activeTargets"])
        except OSError:
            return 0


def _firing(labels: Mapping[str, str], label: str) -> Firing:
    return labels["alertname"], labels.get(label, "")


@contextmanager
def prometheus(
    folder: Path, rules: Mapping[str, str], jobs: Sequence[Mapping[str, Any]]
) -> Iterator[Prometheus]:
    """Run Prometheus with rule files by their names, and scrape configurations; it scrapes twice a second."""
    for name, text in rules.items():
        (folder / name).write_text(text)
    config = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": list(rules),
        "scrape_configs": jobs,
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config))
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    assert _PROMETHEUS is not None
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                _PROMETHEUS,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(30)
        reserved.release()
