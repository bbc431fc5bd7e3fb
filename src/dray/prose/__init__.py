"""Reasons put into words, once and last: nothing decides by what is said here.

`explanations` tells why claims are pending, with the nodes in a table and what would make the closest one fit
(`remedies`); `device_reasons` tells what is wrong with a device, `selector_problems` what rules and patches do not
reach. `wording` and `tables` are the small pieces, for everybody who writes to people. Pure: imports `dray.allocator`
(whose reasons it tells) and what is below it.
"""
