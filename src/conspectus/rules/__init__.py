"""Find what a user has laid down: sentences that bind from then on."""

from conspectus.rules.detection import Rule, find_rules, rule_id, statements_in

__all__ = ["Rule", "find_rules", "rule_id", "statements_in"]
