"""The measuring lab of Conspectus, and the helpers of its tests.

    evaluate   retention measured on anybody's transcripts
    replay     transcripts through a real agent, once under each policy
    report     a measurement as tables, charts and one self-contained page
    testing    scripted models, a server of faults, the archive conformance suite
    commands   `conspectus eval`, `conspectus replay` and `conspectus config explain`

It stands beside the engine, `conspectus`, which runs without it and imports nothing of it.
"""
