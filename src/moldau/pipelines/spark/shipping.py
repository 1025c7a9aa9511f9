"""The user's own modules reach Spark's workers: functions in them travel by value.

Spark sends a function that lives in a module as the module's name, and a worker that cannot import the module
fails. What lies beside the script that was started is not installed anywhere, so nobody else can import it:
such modules are sent whole, with the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

#: What workers have anyway, wherever it was installed from.
_INSTALLED = frozenset({"__main__", "moldau", "pyspark"})


def ship_modules_beside_the_script(folders: Iterable[str | Path] = ()) -> list[str]:
    """Have functions of these modules travel by value from now on; `folders` are further places of theirs."""
    places = {Path(place).resolve() for place in (*sys.path[:1], *folders) if place}
    shipped = [name for name, module in sys.modules.copy().items() if _is_beside(name, module, places)]
    for name in shipped:
        cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]
    return shipped


def _is_beside(name: str, module: ModuleType, places: set[Path]) -> bool:
    file = getattr(module, "__file__", None)
    if file is None or name.partition(".")[0] in _INSTALLED:
        return False
    path = Path(file).resolve()
    return "site-packages" not in path.parts and any(place in path.parents for place in places)
