"""Asking for memory before it is needed, inside compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from rankrls._compiled.jit import compiled

_DISTANCE = 512
"""Entries: some rows of a text, and less than half of a first-level cache."""


def _ask(array, place):  # type: ignore[no-untyped-def]
    """Ask for the cache line of an entry, which may lie outside of the array. Nothing where numba is switched off."""


@intrinsic
def _prefetch(context: Any, array: Any, place: Any) -> Any:
    def code(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0"
        function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        line = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [line, number(0), number(3), number(1)])  # to be read, kept in all caches, data
        return target.get_dummy_value()

    return types.void(array, place), code


@overload(_ask)
def _ask_compiled(array, place):  # type: ignore[no-untyped-def]
    return lambda array, place: _prefetch(array, place)


@compiled
def read_ahead(data, indices, first, last):  # type: ignore[no-untyped-def]
    """Ask for what stands some hundred entries behind those from ``first`` to ``last`` of a sparse matrix.

    Processors foresee a sequence, but not beyond the page of 4 KB that it is in, and two sequences with a gather
    between them not as fast as memory can be read.
    """
    place = np.uint64(first) + np.uint64(_DISTANCE)
    end = np.uint64(last) + np.uint64(_DISTANCE)
    while place < end:
        _ask(data, place)
        _ask(data, place + np.uint64(8))
        _ask(indices, place)
        place += np.uint64(16)
