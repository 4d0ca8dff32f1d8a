"""Measure Conspectus, and check a store of your own.

    replay               transcripts through a real agent, once under each policy; what survives
    billing              the bill of a session, by a simulated prefix cache
    report               a measurement as tables, and as one self-contained page
    archive_conformance  tests of the archive's promises, for a LangGraph store of your own
    commands             `conspectus replay` and `conspectus eval`

The engine, `conspectus`, runs without this package and imports nothing of it.
"""
