"""Dynamic admission: what people have configured to change or refuse the requests of others.

    request ─▶ matching ─▶ conditions ─▶ a policy's expressions (validating_policy, mutating_policy): verdict, patches
                                    └──▶ a webhook's review (review): what it is asked, what its answer means

Policies and webhooks are compiled once per version of their object. `views` shows objects to expressions, typed ones
and plain documents alike, and `environments` says what expressions can name.

Imports only `dray.api` and `dray.cel`. No I/O, no clock: looking up namespaces and parameters, calling webhooks and
applying patches are the server's (`dray.server.admission.dynamic`).
"""
