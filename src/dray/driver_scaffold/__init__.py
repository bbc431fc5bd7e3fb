"""A new driver as files: a class, its tests, how it is built, deployed and used. `dray driver new` writes them.

    name ─▶ Names (module, class, image …) ─▶ template/ with these put in ─▶ files to write

The files below `template` are what they become, with `${…}` for what depends on the name. Reads these, writes nothing.
"""

from dray.driver_scaffold.scaffold import Names, ScaffoldError, files_of

__all__ = ["Names", "ScaffoldError", "files_of"]
