"""The command line: `conspectus compact`, `recall`, `tokens`, `archive`, `config`.

Commands of other packages join them (`joined.py`): of the lab, `replay`, `eval`, `config explain`.

`failures.MEANINGS` lists the exit codes. Every error is one line on standard error. Set
`CONSPECTUS_DEBUG=1` for the traceback.
"""

from conspectus.cli.app import main

__all__ = ["main"]
