"""The scanner for secrets of `redact=True`.

The engine, `conspectus`, finds this package by its entry point, the `default` of the group
`conspectus.redactors`, and imports nothing of it.

Example:
    >>> from conspectus_secrets import SecretRedactor
    >>> SecretRedactor().redact("export DB_PASSWORD=tr0ub4dor&3").text
    'export DB_PASSWORD=[redacted: password]'
"""

from conspectus_secrets.redactor import SecretRedactor

__all__ = ["SecretRedactor"]
