"""The Kubernetes API over HTTP: authentication, authorization, admission, verbs and watches on top of `dray.store`.

A request crosses the rooms in one direction:

    process.http (bytes) → app (who, may they, whose turn) → handlers (typed values) → verbs (default, admit, validate,
        store) → answers (bytes, encoded once)

    app, handlers     one request from end to end; one function per verb
    routes, fairness  the table of what is served; whose request is next
    beside            threads for what takes long: large bodies, large objects, long lists
    warm_up           what the first request of a kind would wait for, done before it comes
    engine, errors    what all rooms share: the store, the clock, a call; failures as the API tells them
    strategies        what a write may change and how it is judged, by kind and subresource
    objects           stored objects as bytes
    security          who asks, and whether they may
    bodies            bytes and queries in, typed values out
    admission         what may change or refuse a write
    verbs, patch      what is done; the formats of patches
    subresources      the strategies of what lies below an object
    transactions      what belongs together in one write: a pod and its claims, its node and its devices
    custom            the definitions in the store, as kinds in the table
    webhooks          asking those of others
    kubelets          what only a node can answer: logs, commands, ports
    protobuf          the other form of bodies and answers
    answers           records in, bytes out
    discovery         what the server tells about itself
    observers         metrics, audit, logs
    indexes           copies of stored objects for questions that every request asks
    upkeep            what the server itself writes
    local             the client of components in the same process: the same verbs, without HTTP
    api_server        wires all of it, over a store, a clock and listeners that it is given
    instance          an `ApiServer` on a state directory

May import `dray.store`, `dray.client`, `dray.streams`, `dray.process` and below. Of the rest of dray, only the commands
open a store (backup and restore).
"""
