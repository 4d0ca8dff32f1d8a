"""The engine in LangChain's agents and LangGraph's graphs, shared by middleware and guard."""
