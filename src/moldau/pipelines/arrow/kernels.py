"""How loops over records are compiled: Numba's C functions over pointers, called through ctypes.

ctypes lets other threads run meanwhile and takes addresses as plain numbers. The machine code is kept on disk
beside the module, or in the user's cache folder where that cannot be written, so only the first use compiles.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from numba import cfunc, types

_pointer: Any = types.CPointer
BYTES: Final = _pointer(types.uint8)
INTS: Final = _pointer(types.int32)
LONGS: Final = _pointer(types.int64)
NUMBER: Final = types.int64

#: The compiled functions, which must live as long as somebody may call them.
_COMPILED: list[Any] = []


def compiled(function: Any, *arguments: Any) -> Callable[..., int]:
    """The function as ctypes calls it; `arguments` are the types above."""
    machine_code: Any = cfunc(types.int64(*arguments), cache=True)(function)
    _COMPILED.append(machine_code)
    kinds = (ctypes.c_int64 if each is NUMBER else ctypes.c_void_p for each in arguments)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(machine_code.address)
