"""NumPy, imported on first use, and the array types.

Importing NumPy takes longer than everything a run does before its first request; declaring arrays must not need it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]
    NarrowArray = npt.NDArray[np.int32]
else:

    class LazyModule(ModuleType):
        """A module that is imported on the first access to one of its attributes."""

        def __getattr__(self, name: str) -> Any:
            module = importlib.import_module(self.__name__)
            self.__dict__.update(vars(module))
            self.__class__ = ModuleType
            return getattr(module, name)

    np = LazyModule("numpy")

    class _ArrayType(type):
        """Metaclass of array types in annotations that are read at run time, such as those of messages."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, np.ndarray)

    class FloatArray(metaclass=_ArrayType):
        """An array of float64."""

        wire_type: ClassVar[str] = "<f8"

    class IntArray(metaclass=_ArrayType):
        """An array of int64."""

        wire_type: ClassVar[str] = "<i8"

    class BoolArray(metaclass=_ArrayType):
        """An array of booleans."""

        wire_type: ClassVar[str] = "|b1"

    class NarrowArray(metaclass=_ArrayType):
        """An array of int32."""

        wire_type: ClassVar[str] = "<i4"


__all__ = ["BoolArray", "FloatArray", "IntArray", "NarrowArray", "np"]
