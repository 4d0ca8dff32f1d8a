"""LangChain middleware that summarises when a history grows."""
