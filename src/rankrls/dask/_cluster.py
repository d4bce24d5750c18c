"""A Dask cluster as an engine for data sets in files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankrls._errors import InputError
from rankrls.streaming.engine import check_workers


@contextmanager
def executor_of(address: str, *, insecure: bool = False) -> Iterator[Any]:
    """A Dask cluster as an executor for ``fit_dataset``: its workers read the files themselves.

    Parameters
    ----------
    address : str
        Of the scheduler: ``tls://``, or ``tcp://`` on this machine.
    insecure : bool
        Whether ``tcp://`` to another machine is allowed: whoever reaches a scheduler can run code on its workers.

    Yields
    ------
    concurrent.futures.Executor

    Raises
    ------
    InputError
        For an address that is not secure; a scheduler that does not answer; and workers without rankrls or with another
        version of it.
    """
    from distributed import Client

    _check_address(address, insecure=insecure)
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError("No scheduler answers at {0}: {1}.", address, error, parameter="scheduler") from error
    with client:
        check_workers(client, "scheduler")
        executor = client.get_executor()
        executor._max_workers = sum(client.nthreads().values())
        yield executor


def _check_address(address: str, *, insecure: bool) -> None:
    protocol, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    here = host in ("localhost", "::1") or host.startswith("127.")
    if protocol == "tls" or (protocol == "tcp" and (here or insecure)):
        return
    raise InputError(
        "{scheduler} {0!r} is not secure: whoever reaches a scheduler can run code on its workers.",
        address,
        remedy="Take tls://, or tcp:// on this machine, or {insecure}.",
        parameter="scheduler",
    )
