"""Send the user's own modules to Spark's workers, by value.

Spark pickles a function of a module as the module's name, and a worker that cannot import the module fails.
Modules in the folder of the started script are not installed anywhere, so functions of theirs are pickled by
value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

#: Modules that every worker can import.
_INSTALLED = frozenset({"__main__", "moldau", "pyspark"})


def pickle_user_modules_by_value(folders: Iterable[str | Path] = ()) -> list[str]:
    """Pickle functions of modules beside the script and in `folders` by value; return the modules' names."""
    places = {Path(place).resolve() for place in (*sys.path[:1], *folders) if place}
    names = [name for name, module in sys.modules.copy().items() if _is_in(places, name, module)]
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]
    return names


def _is_in(places: set[Path], name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None or name.partition(".")[0] in _INSTALLED:
        return False
    path = Path(file).resolve()
    return "site-packages" not in path.parts and any(place in path.parents for place in places)
