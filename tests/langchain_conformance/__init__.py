"""What LangChain's `SummarizationMiddleware` does, and what ours does with the same call.

Each behaviour is run against both classes. It either comes out the same, or differs in a way that
is stated, with the reason; `page.py` writes down what came out. Write the page anew with

    make conformance
"""
