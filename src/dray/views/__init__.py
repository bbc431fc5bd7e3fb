"""What people look at, as plain documents: the fleet, a device, what is pending and why, what happened when.

    cluster (scheduling), snapshot, objects ─▶ views ─▶ JSON ─▶ the dashboard, the terminal, reports

Every document is a frozen struct whose JSON has camel-case names; nothing in it is markup. Pure: no I/O, and the time
is an argument. What a viewer may not read is not in the input, so it is in no document.
"""
