"""What waits to be written to the audit log is bounded by all that callers can make long, not by what they may send."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from dray.process.http import Peer, Request, Response
from dray.server.observers import audit
from dray.server.observers.audit import AuditLog
from dray.server.observers.handling import Handling

LONG = 60_000


def asked(number: int, *, address: int = 0, headers: int = 0) -> Handling:
    """A request whose address, or whose headers, are long."""
    uri = f"/api/v1/namespaces/{number}" + "a" * address
    sent = {"user-agent": f"{number}"} | {f"x-{number}-{each}": "v" * 100 for each in range(headers // 100)}
    return Handling(Request("GET", uri, {"a": uri}, sent, b"", Peer("127.0.0.1"), uri), 0.0, 0.0)


@pytest.mark.parametrize("what", ["addresses", "headers", "answers"])
def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    most = 3_000_000
    monkeypatch.setattr(audit, "MAX_PENDING_BYTES", most)
    log = AuditLog(tmp_path / "audit.log")
    tracemalloc.start()
    try:
        for number in range(400):
            handling = asked(
                number, address=LONG if what == "addresses" else 0, headers=LONG if what == "headers" else 0
            )
            body = bytes(LONG) if what == "answers" else b""
            log.answered(handling, Response(403, body))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * most
