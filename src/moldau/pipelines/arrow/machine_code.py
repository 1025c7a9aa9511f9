"""Machine code of kernels on disk, and its way back into a process by LLVM's linker alone.

How it works. A file holds the object code of one function with its symbol and a checksum. It lies beside this
module, or, where that cannot be written, in the user's cache folder or a folder of the user's own among the
temporary ones. Its name says what it was made from, with which LLVM and for which processor, so that anything
else is simply not found. Losing a file costs compiling again.

Invariants:

- A file is written beside its place and moved there, so it is whole or not there; what is not whole is
  ignored.
- Only code that needs nothing but what every process of Python has is kept: LLVM ends the process when a
  symbol is missing. Numba wraps a function in code that reports exceptions. Kernels raise none, so the two
  symbols of Numba's in there are never called.
- Folders that others may write to are not trusted.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from moldau.pipelines.spark.user_folders import is_ours, temporary_folder, usual_folder

_SUFFIX: Final = ".kernel"
_CHECKSUM_SIZE: Final = 32
_NUMBAS: Final = frozenset({"numba_gil_ensure", "numba_gil_release"})
_KNOWN: Final = re.compile(r"llvm\..*|Py[A-Z_].*|memcpy|memmove|memset")
_DECLARED: Final = re.compile(r"^declare [^@\n]*@\"?([\w.]+)", re.MULTILINE)


class MachineCode(NamedTuple):
    symbol: str
    code: bytes

    @classmethod
    def of(cls, function: Any) -> MachineCode | None:
        """The code of what `numba.cfunc` made; None if it needs more than a plain process has."""
        library = function._library
        needed = set(_DECLARED.findall(library.get_llvm_str())) - _NUMBAS
        if not all(_KNOWN.fullmatch(each) for each in needed):
            return None
        kind, (code, *_) = library.serialize_using_object_code()[1:]
        return cls(function.native_name, code) if kind == "object" else None


def find(name: str, key: str) -> MachineCode | None:
    """What was kept under this name and key, if it is whole."""
    for folder in _folders():
        try:
            content = (folder / _file_name(name, key)).read_bytes()
        except OSError:
            continue
        checksum, body = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
        if hashlib.sha256(body).digest() == checksum:
            symbol, _, code = body.partition(b"\0")
            return MachineCode(symbol.decode(), code)
    return None


def keep(name: str, key: str, machine_code: MachineCode | None) -> None:
    """Keep it for later processes, where there is a place for it."""
    if machine_code is None:
        return
    body = machine_code.symbol.encode() + b"\0" + machine_code.code
    for folder in _folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=folder)
            with open(descriptor, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            os.chmod(temporary, 0o644)
            os.replace(temporary, folder / _file_name(name, key))
        except OSError:
            continue
        return


def load(machine_code: MachineCode) -> int:
    """The address of the function in this process."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code.code))
    engine.finalize_object()
    return int(engine.get_function_address(machine_code.symbol))


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    harmless = ctypes.cast(ctypes.pythonapi.PyErr_Clear, ctypes.c_void_p).value or 0
    for symbol in _NUMBAS:
        # Where Numba is loaded, its own are there.
        if not llvm.address_of_symbol(symbol):
            llvm.add_symbol(symbol, harmless)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _file_name(name: str, key: str) -> str:
    return f"{name}.{hashlib.sha256((_made_for() + key).encode()).hexdigest()[:32]}{_SUFFIX}"


@cache
def _made_for() -> str:
    features = llvm.get_host_cpu_features().flatten()
    return f"{llvmlite.__version__} {llvm.get_default_triple()} {llvm.get_host_cpu_name()} {features}"


def _folders() -> Iterator[Path]:
    """Where machine code may lie, the best place first."""
    yield Path(__file__).parent / "__pycache__"
    for folder in (usual_folder(os.environ), temporary_folder()):
        if folder is not None and is_ours(folder):
            yield folder
