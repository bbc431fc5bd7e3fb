"""What is said of servers that are not dray's."""

from __future__ import annotations

from typing import Any

import pytest

from dray.cli import live


class Server:
    def __init__(self, version: str) -> None:
        self._version = version

    async def server_version(self) -> str:
        return self._version


@pytest.mark.parametrize(
    ("version", "until", "warns"),
    [("v1.37.0", "12:00", True), ("v1.37.0+dray-0.1.0", "12:00", False), ("v1.37.0", None, False)],
)
async def test_an_end_that_nothing_enforces_is_not_promised(
    version: str, until: str | None, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    client: Any = Server(version)
    await live.warn_of_end(client, until)
    said = capsys.readouterr().err
    assert bool(said) == warns
    promised = await live.tell_end(client, until)
    assert ("until" in promised) == (until is not None and not warns), "what it prints contradicts what it warns of"
    assert ("marked to end at 12:00" in promised) == warns
    assert not warns or "nothing on this server ends it at 12:00" in said
