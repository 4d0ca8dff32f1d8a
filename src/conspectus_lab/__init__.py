"""Measure Conspectus, and help to test it.

    evaluate   retention, measured on any transcripts
    replay     transcripts through a real agent, once under each policy
    report     a measurement as tables, charts and one self-contained page
    testing    scripted models, a server of faults, the archive conformance suite
    commands   `conspectus eval`, `conspectus replay` and `conspectus config explain`

The engine, `conspectus`, runs without this package and imports nothing of it.
"""
