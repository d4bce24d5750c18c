"""A property that is computed once for each object, without a lock.

Up to Python 3.11 ``functools.cached_property`` holds one lock for all objects of a class while it computes. A child
that is forked in the meantime inherits the lock, which no thread of the child will ever release, and waits for ever.
Python 3.12 removed the lock.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    T = TypeVar("T")

    class cached_property(functools.cached_property[T]):  # noqa: N801
        """As in Python 3.12: two threads may both compute the value, which is the same."""

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
