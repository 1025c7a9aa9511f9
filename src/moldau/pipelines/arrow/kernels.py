"""Compile loops over records to C functions over pointers, called through ctypes.

ctypes releases the GIL during the call and takes addresses as plain integers. Numba compiles a kernel once
and caches the machine code with its documented file-based cache (`cache=True`): beside the kernel's module,
or in the user's cache folder if the installation is read-only (`NUMBA_CACHE_DIR` overrides both). Loading a
kernel from the cache takes milliseconds; importing Numba takes about half a second per process.

Numba recompiles a cached function when the file that defines it changes, but not when a function it calls in
another file does. A kernel may therefore call only functions of its own module, marked with `inlined`.
"""

from __future__ import annotations

import ctypes
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import numba

from moldau.pipelines.spark.user_folders import cache_folder

BYTES: Final = "uint8*"
INTS: Final = "int32*"
LONGS: Final = "int64*"
NUMBER: Final = "int64"

F = TypeVar("F", bound=Callable[..., Any])

#: A kernel cannot raise an exception into Python: a division by zero yields zero, as in NumPy.
_ERROR_MODEL: Final = "numpy"
#: Numba frees the code of a function that is no longer referenced.
_COMPILED: list[Any] = []


def inlined(function: F) -> F:
    """Make a function callable from the kernels of its module."""
    made: Any = numba.njit(inline="always", error_model=_ERROR_MODEL)(function)
    return made  # type: ignore[no-any-return]


def compiled(function: Callable[..., int], *arguments: str) -> Callable[..., int]:
    """Return the function as ctypes calls it; `arguments` are the types above."""
    _check_helpers(function)
    signature = numba.types.int64(*map(_numba_type, arguments))
    with _writable_cache(Path(inspect.getfile(function)).parent):
        made: Any = numba.cfunc(signature, cache=True, error_model=_ERROR_MODEL)(function)
    _COMPILED.append(made)
    kinds = (ctypes.c_int64 if each == NUMBER else ctypes.c_void_p for each in arguments)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(made.address)


def initialize() -> None:
    """Load what Numba needs before its first kernel: 0.2 s that a process spends before it forks others."""
    compiled(_identity, NUMBER)


def _identity(number: int) -> int:
    return number


def cache_hits() -> int:
    """Return how many kernels of this process were loaded from the cache."""
    return sum(each.cache_hits for each in _COMPILED)


def _numba_type(name: str) -> Any:
    pointer: Any = numba.types.CPointer
    return pointer(getattr(numba.types, name[:-1])) if name.endswith("*") else getattr(numba.types, name)


def _check_helpers(function: Any) -> None:
    """Refuse helpers of other modules, whose changes Numba's cache would miss."""
    for name in function.__code__.co_names:
        helper = getattr(function.__globals__.get(name), "py_func", None)
        if helper is not None and helper.__module__ != function.__module__:
            raise TypeError(f"kernel {function.__qualname__} calls {name} of module {helper.__module__}")


@contextmanager
def _writable_cache(source: Path) -> Iterator[None]:
    """Use the user's cache folder if the folder of the source is read-only and NUMBA_CACHE_DIR is not set."""
    config: Any = numba.config
    given = config.CACHE_DIR
    if not given and not os.access(source, os.W_OK):
        config.CACHE_DIR = str(cache_folder() / "numba")
    try:
        yield
    finally:
        config.CACHE_DIR = given
