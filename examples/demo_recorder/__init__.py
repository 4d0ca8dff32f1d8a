"""A scripted coding agent with real tools, whose session becomes the demo transcript."""
