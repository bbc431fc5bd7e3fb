"""What every process of dray has, whatever it does: time, logs, switches, health, an HTTP listener, memory settings.

    clock                 the time, injected: the real one, and one that tests move
    supervision           keeps what runs for ever running
    tasks                 tasks that run side by side and end together
    logs                  lines for people or JSON for programs, on standard error
    switches              feature gates and API versions that an admin turned off
    histogram             durations counted by size, for metrics
    garbage               Python's garbage collector, set for a process that holds much
    watchdog              who blocks the event loop: logged with its stack, and counted
    http                  HTTP/1.1 on asyncio: bytes in, `Request` out; `Response` or `Stream` in, bytes out
    health                the pages `/livez`, `/readyz`, `/healthz`
    component_endpoints   health and metrics of a process that is no API server

Knows nothing of the API server: `dray.server` serves its API with `http` as other processes serve their metrics.
May import `dray.api`. Does I/O.
"""
