"""Failures of API requests, the same whether they come over HTTP or from a server in the same process."""

from __future__ import annotations

from dray.api.meta import Status, StatusDetails


class ApiError(Exception):
    """A request that failed. `status` is what the server answers, its `code` the HTTP code."""

    def __init__(self, code: int, reason: str, message: str, details: StatusDetails | None = None) -> None:
        super().__init__(message)
        self.status = Status(status="Failure", message=message, reason=reason, details=details, code=code)

    @classmethod
    def of(cls, status: Status) -> ApiError:
        """The failure that a Status tells of."""
        return cls(status.code, status.reason, status.message, status.details)

    @property
    def code(self) -> int:
        """The HTTP code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as `NotFound`."""
        return self.status.reason
