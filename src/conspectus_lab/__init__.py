"""Measure Conspectus, and check a store of your own.

    evaluate             what survives a compaction, measured on any transcripts
    replay               transcripts through a real agent, once under each policy
    billing              the bill of a session, by a simulated prefix cache
    report               a measurement as tables, and as one self-contained page
    archive_conformance  tests of the archive's promises, for a LangGraph store of your own
    commands             `conspectus eval`, `conspectus replay` and `conspectus config explain`

The engine, `conspectus`, runs without this package and imports nothing of it.
"""
