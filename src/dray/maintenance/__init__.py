"""Taking devices out of service and putting them back, through any client: rules written, confirmed, called off.

What the commands, the dashboard and `dray top` have in common: `out_of_service` shows who would be hit, and writes if
that is still so; `rule_writing` stores the rules of a request in the form that the server can keep; `confirmation` says
of what the guard holds that it is meant, or takes it back. What to write is decided below (`snapshot.taint_rules`) and
shown before (`what_if.taint_preview`).
"""
