"""Who may do what: identities and their credentials, RBAC, and the limits that roles cannot express.

A request crosses the package in one direction:

    authentication    token or certificate → Identity
    impersonation     kubectl --as
    rbac              Identity + Attributes → Decision
    node_reads        what a node may read, by the pods that run on it
    node_restriction, driver_restriction, escalation     what RBAC cannot say about a write

Everything but `state_directory`, `credentials` and `token_file` is pure: no I/O, no logging; the clock and the look-ups
of stored objects are handed in. Only `gate`, which puts all of it together for a request, knows HTTP.
"""
