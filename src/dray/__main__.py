"""`python -m dray`: the same as the command `dray`."""

from dray.cli.main import main

main()
