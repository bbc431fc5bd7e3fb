"""The four ways to change an object by a patch, and the record of who set which field.

`json_patch` (RFC 6902), `merge_patch` (RFC 7386) and `strategic` take a document and a patch and return the new
document; `apply` does the same for server-side apply, where the patch is what one manager wants and `managedFields`
say what everybody else wants. `managed` keeps that record when an object is written in any other way.

All of it is pure: plain JSON values in, plain JSON values out, no I/O, no clock, and inputs are never changed (results
share what did not change). What a type looks like comes from `dray.api.schema`. Failures are `PatchError`s with the
HTTP code that kube-apiserver gives. Next in the flow: the server decodes and validates the new document.
"""
