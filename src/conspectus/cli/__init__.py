"""The command line: `conspectus compact`, `recall`, `tokens`, `archive`, `config`.

Other packages add commands (`joined.py`). `failures.MEANINGS` lists the exit codes. Every error is
one line on standard error. Set `CONSPECTUS_DEBUG=1` for the traceback.
"""

from conspectus.cli.app import main

__all__ = ["main"]
