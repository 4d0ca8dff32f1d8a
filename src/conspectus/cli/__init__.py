"""The command line: `conspectus compact`, `recall`, `tokens`, `archive` and `config`.

Commands of other packages join them (`joined.py`): of the lab, `replay`, `eval`, `config explain`.

    0    done: the history was compacted, or needed no compaction
    1    stuck: the history cannot be made to fit, or a replay under Conspectus broke a promise
    2    bad input or usage
    3    the archive failed
    4    no summary could be made, or the model could not be reached
    5    a measurement got worse
    70   an error inside Conspectus
    130  interrupted
    141  whoever read the output stopped reading

Every error is one line on standard error. Set `CONSPECTUS_DEBUG=1` for the traceback.
"""

from conspectus.cli.app import main

__all__ = ["main"]
