"""Runs the pods of Jobs until enough of them succeeded, or too many failed.

`counting` says what finished pods add up to, `plan` what follows; `indexes`, `index_failures`, `failure_policy` and
`success_policy` are parts of both; all pure. `controller` watches and writes.
"""

from dray.controllers.job.controller import JobController

__all__ = ["JobController"]
