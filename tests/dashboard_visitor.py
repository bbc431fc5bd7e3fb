"""Somebody who looks at the page, without a browser: requests as the page makes them."""

from __future__ import annotations

import json
from typing import Any

from dray.dashboard.app import KEY_HEADER
from live_server import LiveServer

API = "/dashboard/api"


class Visitor:
    """Somebody with a browser of their own: what it keeps, and what it sends with everything."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.cookie = ""
        self.key = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """One request, as the page makes it unless headers say otherwise."""
        sent = self.headers() | {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = self.server.connect()
        try:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            found = answer.read()
            told = json.loads(found) if answer.headers.get_content_type() == "application/json" and found else found
            return answer.status, dict(answer.headers), told
        finally:
            connection.close()

    def headers(self) -> dict[str, str]:
        """What goes with everything."""
        return {"Cookie": self.cookie, KEY_HEADER: self.key, "Sec-Fetch-Site": "same-origin"}

    def log_in(self, **shown: str) -> int:
        """With a token or a code."""
        code, headers, told = self.ask("POST", f"{API}/login", shown)
        if code == 200:
            self.cookie = headers["Set-Cookie"].partition(";")[0]
            self.key = told["key"]
        return code
