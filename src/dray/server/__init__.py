"""The Kubernetes API over HTTP: authentication, authorization, admission, verbs and watches on top of `dray.store`.

A request crosses the package in one direction:

    http (bytes) → app (who, may they) → routes (what is asked) → verbs (decode, admit, default, validate, store)
                                                               → responses (bytes encoded once)

Only this package touches `dray.store`. Components in the same process call the verbs through `dray.client` with typed
objects and no HTTP in between.
"""
