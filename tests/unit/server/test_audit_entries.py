"""An entry that cannot be told is lost alone, and said to be."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from dray.process.http import Peer, Request, Response
from dray.server.observers import audit
from dray.server.observers.audit import AuditLog
from dray.server.observers.handling import Handling


async def test_an_entry_that_cannot_be_told_takes_no_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = audit.event

    def odd(entry: Any) -> dict[str, Any]:
        if entry.request.path == "/odd":
            raise ValueError("a mistake")
        return told(entry)

    monkeypatch.setattr(audit, "event", odd)
    log = AuditLog(tmp_path / "audit.log")
    log.start()
    with caplog.at_level(logging.ERROR):
        for path in ("/one", "/odd", "/two"):
            log.answered(
                Handling(Request("GET", path, {}, {}, b"", Peer("127.0.0.1"), path), 0.0, 0.0), Response(200, b"")
            )
        await log.close()
    text = (tmp_path / "audit.log").read_text()
    assert [path in text for path in ("/one", "/odd", "/two")] == [True, False, True]
    assert "entries are lost" in caplog.text
