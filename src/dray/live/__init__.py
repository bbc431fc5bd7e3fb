"""A running cluster as people look at it: views that events keep current, so that looking costs next to nothing.

`cluster_view` (devices, claims, nodes) and `fleet_view` (clusters of a hub) follow a server for a command that shows
them; `overview` and `device_metrics` count what a process sees. Reads through the API; writes nothing.
"""
