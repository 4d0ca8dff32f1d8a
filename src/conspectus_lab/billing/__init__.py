"""What a session costs: the providers' prefix caches, simulated, and bills by dated prices."""

from conspectus_lab.billing.prefix_cache import Block, CacheRules, CacheUse, PrefixCache
from conspectus_lab.billing.rules import rules_for

__all__ = ["Block", "CacheRules", "CacheUse", "PrefixCache", "rules_for"]
