"""The dashboard of a server, at `/dashboard/` on the server's own port."""

from __future__ import annotations

from dray.all_in_one.local_access import LocalAccess
from dray.dashboard.app import PREFIX, Dashboard
from dray.process.clock import Clock
from dray.server.instance import Instance


def mount_dashboard(instance: Instance, clock: Clock) -> Dashboard:
    """Has a server that does not listen yet serve the page. `close` the dashboard before the server stops."""
    dashboard = Dashboard(LocalAccess(instance), clock, is_encrypted=instance.settings.tls)
    instance.mount(PREFIX, dashboard)
    return dashboard


def admin_link(dashboard: Dashboard, instance: Instance) -> str:
    """A link that logs the local user in, once: whoever can read the state directory is the admin anyway."""
    return dashboard.link(instance.credentials.admin_token, instance.url)
