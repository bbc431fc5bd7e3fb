"""The `dray` command: one module per subcommand, each imported only when it runs.

Exit codes everywhere: 0 yes, 1 no, 2 bad input or cannot run. Answers go to standard output, complaints to standard
error; colour only on a terminal, and never with NO_COLOR set.
"""
