"""Apply the steps between source and sinks: SQL conditions, columns and queries, Python functions, checks."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from moldau.pipelines.runtime.checks import check_rows
from moldau.pipelines.runtime.definition import BadDefinition, Definition, Step
from moldau.pipelines.spark.user_modules import pickle_user_modules_by_value

#: The view of the previous step in an SQL step.
INPUT = "input"

#: Errors of a user's file that would occur again.
_PROGRAM_ERRORS = (
    SyntaxError,
    ImportError,
    NameError,
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AssertionError,
)

FrameFunction = Callable[..., DataFrame]


def apply_steps(frame: DataFrame, definition: Definition) -> tuple[DataFrame, list[DataFrame]]:
    """Return the frame after all steps, and the frames with dead letters of their checks."""
    dead: list[DataFrame] = []
    for step in definition.steps:
        try:
            frame = _apply(frame, step, definition, dead)
        except PySparkException as wrong:
            raise BadDefinition(
                f"{definition.file}:{step.line}: Spark rejects this {step.kind} step: {wrong}"
            ) from wrong
    return frame, dead


def _apply(frame: DataFrame, step: Step, definition: Definition, dead: list[DataFrame]) -> DataFrame:
    place = f"{definition.file}:{step.line}"
    if step.check is not None:
        frame, failed = check_rows(frame, [step.check], place=f"line {step.line}")
        dead += [failed] if failed is not None and step.check.on_fail == "dead_letter" else []
        return frame
    match step.kind:
        case "filter":
            return frame.filter(step.arguments[0])
        case "select":
            return frame.selectExpr(*step.arguments)
        case "watermark":
            return frame.withWatermark(step.arguments[0], step.arguments[1])
        case "python":
            return _call(find_function(step.arguments[0], definition.file.parent, place), frame, place)
    frame.createOrReplaceTempView(INPUT)
    return frame.sparkSession.sql(step.arguments[0])


def find_function(reference: str, folder: Path, place: str) -> FrameFunction:
    """Return the function named `module:function` or `file.py:function`, relative to the definition's
    folder."""
    module_name, colon, name = reference.rpartition(":")
    if not colon:
        raise BadDefinition(
            f"{place}: '{reference}' does not name a function; use module:function or file.py:function"
        )
    module = (
        load_file(folder / module_name)
        if module_name.endswith(".py")
        else _import(module_name, folder, place)
    )
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(sorted(key for key, value in vars(module).items() if inspect.isfunction(value)))
        raise BadDefinition(
            f"{place}: {module_name} has no function '{name}'; its functions: {known or 'none'}"
        )
    found: FrameFunction = function
    return found


def load_file(file: Path) -> ModuleType:
    """Import a user's file as a module whose functions are pickled by value for Spark's workers."""
    name = file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise BadDefinition(f"{file}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Its own imports may be in the same folder.
    folder = str(file.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(1, folder)
    try:
        spec.loader.exec_module(module)
    except _PROGRAM_ERRORS as error:
        raise BadDefinition(f"{_place(file, error)}: {type(error).__name__}: {error}") from error
    pickle_user_modules_by_value([file.parent])
    return module


def _place(file: Path, error: BaseException) -> str:
    """Return the file and, if known, the line that raised an error."""
    own = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{own[-1]}" if own else str(file)


def _import(name: str, folder: Path, place: str) -> ModuleType:
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(1, str(folder.resolve()))
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise BadDefinition(f"{place}: no module named {missing.name}") from missing
    pickle_user_modules_by_value([folder])
    return module


def _call(function: FrameFunction, frame: DataFrame, place: str) -> DataFrame:
    result = function(frame)
    if not isinstance(result, DataFrame):
        raise BadDefinition(
            f"{place}: {function.__name__} returns {type(result).__name__}; a step must return a DataFrame"
        )
    return result
