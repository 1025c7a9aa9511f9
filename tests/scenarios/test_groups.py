"""Scenario scripts for classic, consumer, share and streams groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.classic_world import ClassicWorld
from tests.scenarios.consumer_world import ConsumerWorld
from tests.scenarios.script import check
from tests.scenarios.share_world import ShareWorld
from tests.scenarios.streams_world import StreamsWorld

SCRIPTS = sorted((Path(__file__).parent / "groups").glob("classic_*.txt"))
SHARE_SCRIPTS = sorted((Path(__file__).parent / "groups").glob("share_*.txt"))
STREAMS_SCRIPTS = sorted((Path(__file__).parent / "groups").glob("streams_*.txt"))
CONSUMER_SCRIPTS = sorted((Path(__file__).parent / "groups").glob("consumer_*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_classic(script: Path) -> None:
    check(script, ClassicWorld().run)


@pytest.mark.parametrize("script", CONSUMER_SCRIPTS, ids=lambda path: path.stem)
def test_consumer(script: Path) -> None:
    check(script, ConsumerWorld().run)


@pytest.mark.parametrize("script", SHARE_SCRIPTS, ids=lambda path: path.stem)
def test_share(script: Path) -> None:
    check(script, ShareWorld().run)


@pytest.mark.parametrize("script", STREAMS_SCRIPTS, ids=lambda path: path.stem)
def test_streams(script: Path) -> None:
    check(script, StreamsWorld().run)
