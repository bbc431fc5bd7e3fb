"""`namespaces/finalize`: whoever empties a namespace says here that it is done."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api import names
from dray.api.field import FieldError, invalid
from dray.api.generated.core import Namespace
from dray.validation import Context

STANDARD = ("kubernetes", "orphan", "foregroundDeletion")


def finalized(new: Namespace, old: Namespace, _context: Context) -> Namespace:
    """The stored namespace with the finalizers of the new one, and nothing else of it."""
    return replace(old, spec=replace(old.spec, finalizers=new.spec.finalizers))


def problems(new: Namespace, _old: Namespace, _context: Context) -> list[FieldError]:
    """What is wrong with the finalizers."""
    return [
        problem for at, name in enumerate(new.spec.finalizers) for problem in _problems(f"spec.finalizers[{at}]", name)
    ]


def _problems(path: str, name: str) -> list[FieldError]:
    problems = [invalid(path, name, why) for why in names.validate_label_key(name)]
    if not problems and "/" not in name and name not in STANDARD:
        problems.append(invalid(path, name, "is neither a standard finalizer nor a name with a domain"))
    return problems
