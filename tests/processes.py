"""Processes of the tests that begin with everything imported; each would spend seconds on that otherwise."""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import cache
from importlib.util import find_spec
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest

__all__ = ["FORKED", "processes"]

FORKED = {"distributed.worker.multiprocessing-method": "forkserver"}
"""Settings of Dask with which its workers are such processes, once :func:`processes` was called."""


@cache
def processes() -> BaseContext:
    """A context of multiprocessing: its processes are forked from one that has no thread and has computed nothing."""
    context, modules = multiprocessing.get_context("forkserver"), ["rankrls.models", "tests.streaming.arrays"]
    if find_spec("distributed"):
        import dask
        from distributed.utils import get_mp_context

        with dask.config.set(FORKED):
            get_mp_context()  # names modules of its own, but only once
        modules += ["distributed", "rankrls.dask"]
    context.set_forkserver_preload(modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]))
        forkserver.ensure_running()
    return context
