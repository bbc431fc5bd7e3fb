"""Static types of CEL expressions.

A type is a kind, a name and parameters. ``text`` is how it is written in messages; two types are the same
type exactly when their texts are.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

__all__ = [
    "BOOL", "BYTES", "CIDR", "DEVICE", "DOUBLE", "DURATION", "DYN", "ERROR", "FORMAT", "INT", "IP",
    "NULL", "QUANTITY", "SEMVER", "STRING", "TIMESTAMP", "TYPE", "UINT", "URL",
    "Kind", "Type", "list_of", "map_of", "optional_of", "parameter", "type_of",
]  # fmt: skip


class Kind(Enum):
    """What family a type belongs to."""

    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    DYN = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    PARAMETER = auto()
    UINT = auto()


class Type:
    """An immutable static type; use the constants and constructors of this module."""

    __slots__ = ("has_parameters", "kind", "name", "params", "text")

    kind: Final[Kind]
    name: Final[str]
    params: Final[tuple[Type, ...]]
    text: Final[str]
    has_parameters: Final[bool]

    def __init__(self, kind: Kind, name: str, params: tuple[Type, ...] = (), text: str | None = None) -> None:
        """``name`` is the name at run time; ``text`` only where messages use another one."""
        self.kind = kind
        self.name = name
        self.params = params
        if text is None:
            text = f"{name}({', '.join(param.text for param in params)})" if params else name
        self.text = text
        self.has_parameters = kind is Kind.PARAMETER or any(param.has_parameters for param in params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Type({self.text})"

    @property
    def is_dyn(self) -> bool:
        return self.kind is Kind.DYN

    @property
    def is_optional(self) -> bool:
        return self.kind is Kind.OPAQUE and self.name == "optional_type"


BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration", text="duration")
DYN: Final = Type(Kind.DYN, "dyn")
ERROR: Final = Type(Kind.ERROR, "error", text="!error!")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type", text="null")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp", text="timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")

DEVICE: Final = Type(Kind.STRUCT, "kubernetes.DRADevice")
QUANTITY: Final = Type(Kind.STRUCT, "kubernetes.Quantity")
SEMVER: Final = Type(Kind.STRUCT, "kubernetes.Semver")
URL: Final = Type(Kind.STRUCT, "kubernetes.URL")
FORMAT: Final = Type(Kind.STRUCT, "kubernetes.NamedFormat")
IP: Final = Type(Kind.OPAQUE, "net.IP")
CIDR: Final = Type(Kind.OPAQUE, "net.CIDR")


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(Kind.OPAQUE, "optional_type", (value,))


def type_of(denoted: Type) -> Type:
    """The type of the type itself, as ``int`` in ``type(1) == int`` has it."""
    return Type(Kind.TYPE, "type", (denoted,))


def parameter(name: str) -> Type:
    """A type parameter of a declaration, or a free variable of one check."""
    return Type(Kind.PARAMETER, name)
