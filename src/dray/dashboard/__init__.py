"""The page: the fleet, devices, what waits and why, taking devices out of service, what happened, live in a browser.

    browser ─▶ app (routes) ─▶ sessions (who) ─▶ live.Viewer of that session ─▶ views ─▶ JSON, or a stream of it
                          └─▶ maintenance.out_of_service ─▶ the viewer's own client

Just another client of the API: everything is read and written with the viewer's own credential, never with a right of
the process that serves the page. What is in `static` ships as it is, without a build step; it puts text into the page
as text, never as markup. `app.Dashboard` is an application for `process.http`, whoever listens.
"""
