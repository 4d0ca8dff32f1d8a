"""The engine in LangChain's agents, shared by the middleware and the guard."""
