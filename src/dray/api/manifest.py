"""Manifests as people write them: YAML (as kubectl reads it) and JSON, several documents in one text.

A builder over libyaml's events rather than PyYAML's loaders: it keeps YAML 1.1 meanings as Kubernetes' tools have them
(`yes` is true, `0644` is octal), leaves dates as strings, refuses duplicate keys, and bounds nesting and aliases.
Lines are looked up only when a finding needs one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs do not export it

from dray.api import codec

# PyYAML's stubs make every event and mark optional; libyaml always gives both.
Parser = Any
Event = Any

MAX_DEPTH = 200
MAX_NODES_FROM_ALIASES = 100_000
MAX_LETTERS_FROM_ALIASES = 3 * 1024 * 1024
MAX_TAG_DIRECTIVES = 100
"""libyaml compares each with all others before the first value is seen."""
MAX_NESTED_VALUES = 10_000_000
"""The sum over all values in brackets of how deep they stand: libyaml's work for each grows with its depth."""


LARGE = 1024 * 1024
"""Bytes of a list from which on its objects are read one by one."""

_SEPARATOR = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_TAG_DIRECTIVE = re.compile(r"(?:\A|[\r\n\x85\u2028\u2029])\uFEFF?%TAG")


class ManifestError(ValueError):
    """A text that is not YAML or JSON, or that goes beyond the limits; `line` counts from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Document(msgspec.Struct, frozen=True):
    """One document of a text: its value as plain Python, and the text it came from."""

    value: Any
    text: str | bytes
    index: int
    first_line: int
    above: int = 0
    """Lines of the file above the text."""

    def line_of(self, path: str) -> int:
        """The line (from 1) of the field at `path`, or of the nearest field around it."""
        return self.above + (_find_line(self.text, self.index, _steps(path)) or self.first_line)


def parse(data: bytes) -> list[Document]:
    """All documents in `data`, empty ones left out. Raises ManifestError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestError(f"invalid UTF-8: byte 0x{data[error.start]:02x}", line) from None
    if text.lstrip()[:1] in ("{", "["):
        documents = _parse_json(text)
        if documents is not None:
            return documents
    return list(_parse_yaml(text))


def split_documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The documents of a text, unread, each with how many lines are above it: no value goes beyond a separator."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(data) if found.start())]
    above = 0
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        yield above, data[start:end]
        above += data.count(b"\n", start, end)


def parse_large_list(data: bytes) -> LargeList | None:
    """A large list of objects in JSON; None if it is something else, or small. Raises ManifestError.

    There may be gigabytes of it: nothing of the size of the text is made beside the text.
    """
    if len(data) < LARGE or not data[:LARGE].lstrip().startswith(b"{") or not _is_utf8(data):
        return None
    try:
        items = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("items", msgspec.Raw(b"null"))
        entries = msgspec.json.decode(items, type=list[msgspec.Raw])
        written = memoryview(items)
        start = data.find(written[:LARGE])
        documents = _parse_json((data[:start] + b"[]" + data[start + written.nbytes :]).decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not documents:
        return None
    return LargeList(Document(documents[0].value, data, 0, documents[0].first_line), entries)


def _is_utf8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, 0 if data.isascii() else len(data), LARGE):
            decoder.decode(data[start : start + LARGE], final=start + LARGE >= len(data))
    except UnicodeDecodeError:
        return False
    return True


class LargeList(NamedTuple):
    """A list whose objects are read one by one: all at once they take ten times the room of the text."""

    document: Document
    """Without the objects."""
    entries: list[msgspec.Raw]

    def entry(self, index: int) -> Any:
        """The value of an object. Raises ManifestError."""
        data = bytes(self.entries[index])
        try:
            value, doubled = codec.parse_json(data), codec.duplicate_fields(data)
        except codec.DecodeError as error:
            raise ManifestError(str(error), self.document.line_of(f"items[{index}]")) from None
        if doubled:
            path = f"items[{index}].{doubled[0]}"
            raise ManifestError(f'key "{path}" already set in map', self.document.line_of(path))
        return value


def parse_single(data: bytes, source: str, wanted: str) -> dict[str, Any]:
    """The object that a text consists of. Raises ManifestError, which names `source` and what is wrong, or `wanted`."""
    try:
        documents = parse(data)
    except ManifestError as error:
        place = f"{source}:{error.line}" if error.line else source
        raise ManifestError(f"{place}: {error.message}", error.line) from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise ManifestError(f"{source}: {wanted}")
    value: dict[str, Any] = documents[0].value
    return value


def _parse_json(text: str) -> list[Document] | None:
    """The whole text as one JSON value; None if it is not JSON, so that YAML (with line numbers) may judge it."""
    data = text.encode()
    try:
        value = codec.parse_json(data)
        doubled = codec.duplicate_fields(data)
    except codec.DecodeError:
        return None
    first_line = text[: len(text) - len(text.lstrip())].count("\n") + 1
    document = Document(value, text, 0, first_line)
    if doubled:
        raise ManifestError(f'key "{doubled[0]}" already set in map', document.line_of(doubled[0]))
    return [document]


def _parse_yaml(text: str) -> Iterator[Document]:
    if text.count("%TAG") > MAX_TAG_DIRECTIVES and len(_TAG_DIRECTIVE.findall(text)) > MAX_TAG_DIRECTIVES:
        raise ManifestError(f"more than {MAX_TAG_DIRECTIVES} %TAG directives")
    parser: Parser = CParser(text)
    try:
        index = 0
        while True:
            event = parser.get_event()
            if isinstance(event, yaml.StreamEndEvent):
                return
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(parser)
                event = parser.get_event()
                line = event.start_mark.line + 1
                value = builder.build(event, 0)
                if value is not None:
                    yield Document(value, text, index, line)
                index += 1
    except yaml.YAMLError as error:
        raise _syntax_error(error, text) from None


def _syntax_error(error: yaml.YAMLError, text: str) -> ManifestError:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        return ManifestError(f"not valid YAML: {error.reason}", line)
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return ManifestError(f"not valid YAML: {problem}", mark.line + 1 if mark else None)


class _Weight(NamedTuple):
    """What a value weighs when it is written out."""

    nodes: int
    letters: int


class _Builder:
    """Plain values from the events of one document."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._anchors: dict[str, tuple[Any, _Weight]] = {}
        self._from_aliases = _Weight(0, 0)
        self._count = 0
        self._letters = 0
        self._brackets = 0
        self._nested_values = 0

    def build(self, event: Event, depth: int) -> Any:
        """The value that starts with `event`."""
        if depth > MAX_DEPTH:
            raise _error_at(event, f"nested deeper than {MAX_DEPTH} levels")
        self._count += 1
        if self._brackets:
            self._nested_values += self._brackets
            if self._nested_values > MAX_NESTED_VALUES:
                raise _error_at(event, "too many values in brackets that are nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        count, letters = self._count, self._letters
        value: Any
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            self._letters += len(event.value)
        else:
            self._brackets += bool(event.flow_style)
            value = self._sequence(depth) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(depth)
            self._brackets -= bool(event.flow_style)
        if event.anchor:
            self._anchors[event.anchor] = value, _Weight(self._count - count + 1, self._letters - letters)
        return value

    def _alias(self, event: Event) -> Any:
        """An alias shares the value; what it would weigh if written out is bounded, against YAML bombs."""
        if event.anchor not in self._anchors:
            raise _error_at(event, f"unknown anchor '{event.anchor}'")
        value, weight = self._anchors[event.anchor]
        self._count += weight.nodes
        self._letters += weight.letters
        nodes, letters = self._from_aliases
        self._from_aliases = _Weight(nodes + weight.nodes, letters + weight.letters)
        if self._from_aliases.nodes > MAX_NODES_FROM_ALIASES:
            raise _error_at(event, f"aliases expand to more than {MAX_NODES_FROM_ALIASES} values")
        if self._from_aliases.letters > MAX_LETTERS_FROM_ALIASES:
            raise _error_at(event, f"aliases expand to more than {MAX_LETTERS_FROM_ALIASES} letters")
        return value

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := self._parser.get_event(), yaml.SequenceEndEvent):
            items.append(self.build(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        while not isinstance(event := self._parser.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _error_at(event, "a key must be a plain value")
            is_merge = event.value == "<<" and event.implicit[0]
            key = _key(event)
            self._letters += len(key)
            value = self.build(self._parser.get_event(), depth + 1)
            if is_merge:
                merged.extend(_merge_sources(event, value))
            elif key in mapping:
                raise _error_at(event, f'key "{key}" already set in map')
            else:
                mapping[key] = value
        for source in merged:
            for key, value in source.items():
                mapping.setdefault(key, value)
        return mapping


def _merge_sources(event: Event, value: Any) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise _error_at(event, "a merge key (<<) takes a mapping or a list of mappings")
    return sources


def _error_at(event: Event, message: str) -> ManifestError:
    return ManifestError(message, event.start_mark.line + 1)


_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_OCTAL = re.compile(r"([-+]?)0o?([0-7_]+)")
_HEX = re.compile(r"([-+]?)0x([0-9a-fA-F_]+)")
_BINARY = re.compile(r"([-+]?)0b([01_]+)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)([eE][-+]?[0-9]++)?")
_MAX_DIGITS = 400


def _scalar(event: Event) -> Any:
    text: str = event.value
    tag = event.tag
    if tag is not None and tag != "!":
        return _tagged(event, tag)
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NOT_JSON.fullmatch(text):
        raise _error_at(event, f"{text} has no meaning in a manifest")
    return _number(event, text)


def _tagged(event: Event, tag: str) -> Any:
    if tag in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:binary", "tag:yaml.org,2002:timestamp"):
        return event.value
    if tag == "tag:yaml.org,2002:null":
        return None
    if tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool"):
        value = _WORDS.get(event.value) if tag.endswith("bool") else _number(event, event.value)
        if not isinstance(value, str) and value is not None:
            return value
    raise _error_at(event, f"cannot read {event.value!r} as {tag}")


def _number(event: Event, text: str) -> Any:
    """A number if the text is one, else the text."""
    if len(text) > _MAX_DIGITS:
        if text.lstrip("+-").isdigit():
            raise _error_at(event, "number with too many digits")
        return text
    if _DECIMAL.fullmatch(text):
        return int(text.replace("_", ""))
    for pattern, base in ((_OCTAL, 8), (_HEX, 16), (_BINARY, 2)):
        if match := pattern.fullmatch(text):
            digits = match[2].replace("_", "")
            return int(match[1] + digits, base) if digits else text
    if _FLOAT.fullmatch(text):
        return _float(event, text)
    return text


def _float(event: Event, text: str) -> int | float:
    """A float, as an integer where it is one: that is how it reaches the API through JSON."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _error_at(event, f"{text} is out of range")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _key(event: Event) -> str:
    value = _scalar(event)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


def _steps(path: str) -> list[str]:
    """`spec.devices[0].attributes[a.b/c]` → ["spec", "devices", "0", "attributes", "a.b/c"]."""
    return [bracket or name for bracket, name in _STEP.findall(path)]


def look_up(value: Any, path: str) -> Any:
    """The part of a plain value at a field path, None if there is none."""
    for step in _steps(path):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _find_line(text: str | bytes, index: int, steps: list[str]) -> int | None:
    """Follows `steps` through the events of the document number `index`; the line of the deepest field found."""
    parser: Parser = CParser(text)
    try:
        seen = -1
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                seen += 1
                if seen == index:
                    return _descend(parser, parser.get_event(), steps)
        return None
    except yaml.YAMLError:
        return None


def _descend(parser: Parser, event: Event, steps: list[str]) -> int:
    line: int = event.start_mark.line + 1
    for step in steps:
        found = None
        if isinstance(event, yaml.MappingStartEvent):
            found = _enter_key(parser, step)
        elif isinstance(event, yaml.SequenceStartEvent) and step.isdigit():
            found = _enter_item(parser, int(step))
        if found is None:
            return line
        line, event = found
    return line


def _enter_key(parser: Parser, key: str) -> tuple[int, Event] | None:
    while not isinstance(event := parser.get_event(), yaml.MappingEndEvent):
        line = event.start_mark.line + 1
        value = parser.get_event()
        if isinstance(event, yaml.ScalarEvent) and event.value == key:
            return line, value
        _skip(parser, value)
    return None


def _enter_item(parser: Parser, index: int) -> tuple[int, Event] | None:
    position = 0
    while not isinstance(event := parser.get_event(), yaml.SequenceEndEvent):
        if position == index:
            return event.start_mark.line + 1, event
        _skip(parser, event)
        position += 1
    return None


def _skip(parser: Parser, event: Event) -> None:
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        event = parser.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
