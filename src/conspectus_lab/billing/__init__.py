"""Price a session: simulated prefix caches, and bills by dated prices."""

from conspectus_lab.billing.prefix_cache import Block, CacheRules, CacheUse, PrefixCache, rules_for
from conspectus_lab.billing.session import Bill, Till, block_of, summed

__all__ = [
    "Bill",
    "Block",
    "CacheRules",
    "CacheUse",
    "PrefixCache",
    "Till",
    "block_of",
    "rules_for",
    "summed",
]
