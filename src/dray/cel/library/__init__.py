"""The function libraries, one module each.

Every module has ``FUNCTIONS``, the declarations with their implementations. Which libraries an expression can
use is decided in ``dray.cel.environment``; what calls cost in ``dray.cel.call_costs`` and
``dray.cel.call_estimates``.
"""
