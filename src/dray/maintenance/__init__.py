"""Taking devices out of service and putting them back, through any client: rules written, confirmed, called off.

What the commands and the dashboard have in common: `rule_writing` stores the rules of a request in the form that the
server can keep, `confirmation` says of what the guard holds that it is meant, or takes it back. What to write is
decided below (`snapshot.taint_rules`) and shown before (`what_if.taint_preview`).
"""
