"""Asking webhooks over HTTPS: where one is (`targets`), and one POST that is answered within bounds (`client`).

Who is asked is up to somebody's configuration, so nothing is expected of them: an answer is read to its end up to a
number of bytes and seconds, redirects are refused, and who waits keeps nobody else from going on.
"""

from dray.server.webhooks.client import WebhookClient, WebhookFailed
from dray.server.webhooks.targets import Target, find_target

__all__ = ["Target", "WebhookClient", "WebhookFailed", "find_target"]
