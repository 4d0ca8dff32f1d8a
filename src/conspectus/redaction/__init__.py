"""Redaction: the protocol of a redactor, and its use on messages.

The default redactor, the secret scanner, is a package of its own, `conspectus_secrets`.
"""

from conspectus.redaction.redaction import Redact, Redacted, Redaction, Redactor

__all__ = ["Redact", "Redacted", "Redaction", "Redactor"]
