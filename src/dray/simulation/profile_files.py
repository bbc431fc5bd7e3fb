"""Profiles from YAML that people write. Errors name the file, the field and the rule.

A profile is checked whole when it is loaded: it is published for an imaginary node, and what comes out is validated
as the API server would validate it, so that a mistake is reported before anything is written.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from dray import validation
from dray.api import codec, manifest
from dray.api.meta import Object
from dray.simulation import publication
from dray.simulation.profile import Profile
from dray.simulation.templates import TemplateError
from dray.validation.documents import InvalidObjectError

SUFFIX: Final = ".yaml"
SHOWN: Final = 3


class ProfileError(ValueError):
    """A profile that cannot be used."""


def shipped_profiles() -> dict[str, str]:
    """Names and contents of the profiles that come with dray."""
    folder = resources.files("dray.simulation") / "profiles"
    return {
        entry.name.removesuffix(SUFFIX): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(SUFFIX)
    }


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by name, or one from a file. Raises ProfileError."""
    path = Path(name_or_path)
    if path.suffix or "/" in name_or_path:
        try:
            return parse_profile(path.read_bytes(), str(path), path.stem)
        except OSError as error:
            raise ProfileError(f"profile {path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    shipped = shipped_profiles()
    if name_or_path not in shipped:
        known = ", ".join(shipped)
        raise ProfileError(f"there is no profile {name_or_path!r}. Give one of {known}, or a file ending in {SUFFIX}.")
    return parse_profile(shipped[name_or_path].encode(), f"profile {name_or_path}", name_or_path)


def parse_profile(data: bytes, source: str, name: str) -> Profile:
    """A profile from its text; `source` stands in messages. Raises ProfileError."""
    wanted = "a profile is one YAML document with the fields node, pools, pods and objects"
    try:
        value = manifest.parse_single(data, source, wanted)
    except manifest.ManifestError as error:
        raise ProfileError(error.message) from None
    reading = codec.read(value, Profile)
    if reading.problems or reading.obj is None:
        raise ProfileError(f"{source}: {'; '.join(reading.problems)}")
    profile = replace(reading.obj, name=name)
    try:
        problems = _check(profile)
    except (TemplateError, publication.PublicationError, InvalidObjectError) as error:
        raise ProfileError(f"{source}: {error}") from None
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise ProfileError(f"{source}: {'; '.join(problems[:SHOWN])}{more}")
    return profile


def _check(profile: Profile) -> list[str]:
    """What is wrong with what would be published for a node, in words."""
    node = publication.node(profile, 1)
    made: list[Object] = [node, *publication.slices(profile, node), *publication.shared_slices(profile)]
    made += profile.typed_objects()
    found = []
    for obj in made:
        errors = validation.validate(obj)
        found += [f"{obj.kind} {obj.metadata.name}: {error}" for error in errors]
    return found + _behaviour_problems(profile)


def _behaviour_problems(profile: Profile) -> list[str]:
    """Times below zero, or a code that no process ends with."""
    pods = profile.pods
    found = []
    for name, seconds in (
        ("startSeconds", pods.start_seconds),
        ("stopSeconds", pods.stop_seconds),
        ("runSeconds", pods.run_seconds),
    ):
        if seconds is not None and seconds < 0:
            found.append(f"pods.{name}: must not be negative")
    if not 0 <= pods.exit_code <= 255:
        found.append("pods.exitCode: must be from 0 to 255")
    return found
