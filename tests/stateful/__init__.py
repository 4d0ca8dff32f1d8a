"""What the stateful property tests share: what is said, who summarises, who judges."""
