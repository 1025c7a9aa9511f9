"""How loops over records are compiled: C functions over pointers, called through ctypes.

ctypes lets other threads run meanwhile and takes addresses as plain numbers. Numba compiles, once: the
machine code is kept on disk (`machine_code`), and later processes load it without Numba, whose import alone
costs half a second and fifty megabytes.

A kernel's module knows nothing of Numba: its functions are plain Python over pointers. Those marked `inlined`
become part of whoever calls them in the same module, or imports them if they need no others; `compiled` makes
a function of C.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

from moldau.pipelines.arrow import machine_code
from moldau.pipelines.arrow.machine_code import MachineCode

BYTES: Final = "uint8*"
INTS: Final = "int32*"
LONGS: Final = "int64*"
NUMBER: Final = "int64"

F = TypeVar("F", bound=Callable[..., Any])

_INLINED: Final = "_inlined_into_kernels"
#: Nobody hears an exception of a kernel: a division by zero gives zero, as in NumPy.
_NO_ERRORS: Final = "numpy"
#: What Numba compiled in this process must live as long as somebody may call it.
_COMPILED: list[Any] = []


def inlined(function: F) -> F:
    """A part of the kernels of its module."""
    setattr(function, _INLINED, True)
    return function


def compiled(function: Callable[..., int], *arguments: str) -> Callable[..., int]:
    """The function as ctypes calls it; `arguments` are the types above."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    key = _fingerprint(function, arguments)
    kept = machine_code.find(name, key)
    address = _compile(function, arguments, name, key) if kept is None else machine_code.load(kept)
    kinds = (ctypes.c_int64 if each == NUMBER else ctypes.c_void_p for each in arguments)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)


def _fingerprint(function: Any, arguments: tuple[str, ...]) -> str:
    """Changes with the source of the modules it comes from and with every number the function may know."""
    scope = function.__globals__
    numbers = sorted((name, each) for name, each in scope.items() if type(each) is int)
    parts = (function, *_inlined(scope).values())
    sources = sorted({inspect.getsource(inspect.getmodule(each) or each) for each in parts})
    return hashlib.sha256(repr((sources, numbers, arguments)).encode()).hexdigest()


def _inlined(scope: dict[str, Any]) -> dict[str, Any]:
    """What is inlined, by name. In a module that was compiled by this process Numba has wrapped it."""
    plain = {name: getattr(each, "py_func", each) for name, each in scope.items()}
    return {
        name: each for name, each in plain.items() if inspect.isfunction(each) and hasattr(each, _INLINED)
    }


def _compile(function: Any, arguments: tuple[str, ...], name: str, key: str) -> int:
    import numba

    scope = function.__globals__
    for each, value in _inlined(scope).items():
        scope[each] = numba.njit(inline="always", error_model=_NO_ERRORS)(value)
    pointer: Any = numba.types.CPointer
    kinds = [
        pointer(getattr(numba.types, each[:-1])) if each.endswith("*") else getattr(numba.types, each)
        for each in arguments
    ]
    made: Any = numba.cfunc(numba.types.int64(*kinds), error_model=_NO_ERRORS)(function)
    _COMPILED.append(made)
    machine_code.keep(name, key, MachineCode.of(made))
    return int(made.address)
