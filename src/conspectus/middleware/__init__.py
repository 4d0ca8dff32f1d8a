"""LangChain middleware that summarises when a history grows: when and what, before each model call."""
