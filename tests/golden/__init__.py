"""What earlier versions wrote, as files that are never written anew: archives, drafts, checkpoints.

Each numbered folder is what one version wrote of the conversations in `threads.py`: an archive, the
checkpoints of graphs, and in `expected.json` what they hold. `tests/test_golden.py` reads all of
them with today's code. A folder that is there is never changed, or it would prove nothing of old
files: when a form changes on purpose, `make golden WRITE=1` adds the next number beside it.
Forms of versions that were never released are not read: the first folder is of the second edition.
"""
