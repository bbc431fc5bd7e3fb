"""Bodies of pods. Most pods come in numbers, with one spec: it is read once and shared, with all that follows from it.

What is remembered of a spec (`dray.api.sharing`) then holds for all its pods: defaults, tolerations, validation.
"""

from __future__ import annotations

import msgspec

from dray.api import codec
from dray.api.generated.core import Pod, PodSpec, PodStatus
from dray.api.meta import Object
from dray.api.recent import Bounded
from dray.api.struct import decode_value

LIMIT = 128
LONGEST = 16 * 1024
"""Specs with more bytes are not kept for others."""


class _Around(Object):
    """A pod whose spec is left as it came."""

    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodStatus = msgspec.field(default_factory=PodStatus)


_decoder = msgspec.json.Decoder(_Around, dec_hook=decode_value)
_specs: Bounded[bytes, PodSpec] = Bounded(LIMIT)


def read(data: bytes, *, find_duplicates: bool) -> codec.Reading[Pod]:
    """A pod, as `codec.read_json` does it. Raises DecodeError if it is not JSON."""
    try:
        around = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return codec.read_json(data, Pod, find_duplicates=find_duplicates)
    written = bytes(around.spec)
    spec = _specs.get(written)
    # A spec that is kept was found faultless, so only the rest is left to look at.
    rest = data.replace(written, b"{}", 1)
    if spec is None or codec.may_overflow(rest):
        reading = codec.read_json(data, Pod, find_duplicates=find_duplicates)
        if find_duplicates and len(written) <= LONGEST:
            _remember(written, reading)
        return reading
    pod = Pod(
        kind=around.kind, api_version=around.api_version, metadata=around.metadata, spec=spec, status=around.status
    )
    return codec.Reading(pod, duplicates=codec.duplicate_fields(rest) if find_duplicates else ())


def _remember(written: bytes, reading: codec.Reading[Pod]) -> None:
    if reading.obj is not None and not reading.unknown and not reading.duplicates:
        _specs.keep(written, reading.obj.spec)
