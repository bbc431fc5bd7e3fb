"""Those who hear of every request and change none: metrics, the audit log, the log of requests."""
