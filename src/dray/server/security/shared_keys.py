"""What several servers of one cluster have in common: the authority, the key that signs tokens, the admin's token.

The first server makes them and puts them into the store that all share; whoever comes later takes them from there. In
each state directory they are files, as with a single server.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from dray.server.security.state_directory import StateDirectory, StateDirectoryError

FILES: Final = ("pki/ca.crt", "pki/ca.key", "pki/service-account.key", "admin-token")


class Shared(Protocol):
    """One value that all servers of a cluster have."""

    def find(self) -> bytes | None:
        """What it is; None if nobody has set it. Raises StoreError."""
        ...

    def share(self, value: bytes) -> bytes:
        """Sets it unless it is set, and gives what it is then. Raises StoreError."""
        ...


def share_keys(directory: StateDirectory, shared: Shared, make: Callable[[], None]) -> None:
    """The keys of the cluster are in the directory afterwards; `make` makes there what is missing.

    Raises StateDirectoryError if the directory has keys of another cluster, and StoreError.
    """
    found = shared.find()
    if found is None:
        make()
        ours = _write({name: directory.read(name) or b"" for name in FILES})
        found = shared.share(ours)
        if found == ours:
            return
        _take(directory, _read(found), is_new=True)  # another server was faster, and ours were seen by nobody
    else:
        _take(directory, _read(found), is_new=False)


def _take(directory: StateDirectory, files: dict[str, bytes], *, is_new: bool) -> None:
    for name in reversed(FILES):
        present = directory.read(name)
        if present is not None and present != files[name] and not is_new:
            raise StateDirectoryError(
                f"{directory.file(name)} is not that of the cluster in the store. Give an empty directory for this "
                "server, or an empty prefix for a new cluster."
            )
    for name in reversed(FILES):
        directory.write(name, files[name])


def _write(files: dict[str, bytes]) -> bytes:
    return msgspec.json.encode({name: base64.b64encode(data).decode() for name, data in files.items()})


def _read(value: bytes) -> dict[str, bytes]:
    found = msgspec.json.decode(value, type=dict[str, str])
    return {name: base64.b64decode(found[name]) for name in FILES}
