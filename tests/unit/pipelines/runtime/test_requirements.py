"""`moldau[spark]` requires packages that Spark imports without declaring them."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

from tests.docs.markdown import ROOT


def test_protobuf_is_new_enough_for_the_python_state_of_spark() -> None:
    spec = find_spec("pyspark.sql.streaming.proto")
    assert spec is not None and spec.submodule_search_locations is not None
    generated = (Path(spec.submodule_search_locations[0]) / "StateMessage_pb2.py").read_text()
    made_with = re.search(r"Protobuf Python Version: ([\d.]+)", generated)
    assert made_with is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"protobuf>={made_with[1]}" in project["optional-dependencies"]["spark"]
