"""Servers from Maven Central: OpenSearch and Elasticsearch."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from tests.harness.databases.process import ServerProcess, free_port
from tests.interop import jars


class SearchServer:
    """One node with an empty data folder."""

    def __init__(self, artifact: str) -> None:
        archive = jars.distribution(artifact)
        self._server = ServerProcess()
        with zipfile.ZipFile(archive) as content:
            content.extractall(self._server.folder)
        [self._home] = [each for each in self._server.folder.iterdir() if (each / "bin").is_dir()]
        self.name = name = self._home.name.partition("-")[0]
        self.port = free_port()
        (self._home / "config" / f"{name}.yml").write_text(
            f"http.port: {self.port}\ntransport.port: {free_port()}\nnetwork.host: 127.0.0.1\n"
            "discovery.type: single-node\ncluster.routing.allocation.disk.threshold_enabled: false\n"
        )
        self._program = self._home / "bin" / name
        self._program.chmod(0o755)
        for each in self._home.rglob("*"):
            self._own(each)
        self._own(self._home)
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = ["env", "ES_JAVA_OPTS=-Xms384m -Xmx384m", "OPENSEARCH_JAVA_OPTS=-Xms384m -Xmx384m"]
        command += [f"ES_JAVA_HOME={_java_home()}", f"OPENSEARCH_JAVA_HOME={_java_home()}"]
        self._server.start([*command, str(self._program)], self._is_ready, timeout=180)

    def stop(self) -> None:
        self._server.stop()

    def close(self) -> None:
        self._server.close()

    def _is_ready(self) -> bool:
        import httpx2

        try:
            return bool(httpx2.get(f"{self.url}/_cluster/health", timeout=5).is_success)
        except httpx2.TransportError:
            return False

    def _own(self, path: Path) -> None:
        if self._server.user:
            shutil.chown(path, self._server.user)


def _java_home() -> Path:
    found = shutil.which("java")
    if found is None:
        raise jars.Missing("Java is not installed")
    return Path(found).resolve().parents[1]
