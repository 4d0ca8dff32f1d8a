"""Define the forms of known providers' secrets, and of others that their form alone reveals.

Each pattern begins with a fixed part and repeats one class of characters at a time,
possessively, so that no text takes more than a few looks at each of its characters.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from conspectus_secrets.words import can_be

START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""No letter or digit before it, except an escaped line end of JSON: a secret does not begin within
a word, a hash or an encoded image.
"""

END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Format:
    """One form of secret.

    Attributes:
        kind: name in the replacement.
        hints: lower-case texts, one of which the text must hold.
        pattern: the group `value`, or group 1, is the secret, if there is one.
        real: checks a match; None for no check.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    real: Callable[[str], bool] | None = None

    @classmethod
    def of(
        cls, kind: str, hints: str, pattern: str, real: Callable[[str], bool] | None = None
    ) -> Format:
        """Make a form from hints with blanks between them."""
        return cls(kind, tuple(hints.split()), re.compile(pattern), real)

    def found(self, text: str, lower: str) -> Iterator[tuple[re.Match[str], int, int]]:
        """Yield each match with the place of its secret; `lower` is the text in lower case."""
        if not any(hint in lower for hint in self.hints):
            return
        named = self.pattern.groupindex.get("value")
        group = named if named is not None else min(self.pattern.groups, 1)
        for match in self.pattern.finditer(text):
            if self.real is None or self.real(match[group]):
                yield match, *match.span(group)


def mixed(secret: str) -> bool:
    """Return whether it has letters and digits, unlike a plain word or number."""
    return any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)


def _scattered(secret: str) -> bool:
    """Return whether it has digits and letters of both cases, as random text has."""
    return mixed(secret) and any(c.isupper() for c in secret) and any(c.islower() for c in secret)


def decoded_pair(encoded: str) -> bool:
    """Return whether it is `user:password` in base64."""
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    user, colon, password = text.partition(":")
    return bool(colon and user and password) and text.isprintable()


def _credential(secret: str) -> bool:
    """Return whether a value of a header is no name, address or code."""
    digits = sum(map(str.isdigit, secret))
    return digits >= 2 and "://" not in secret and can_be("token", secret, False, False)


_format = Format.of

FORMATS: tuple[Format, ...] = (
    # Models and their hosts
    _format("anthropic-key", "sk-ant-", START + r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _format("openrouter-key", "sk-or-", START + r"sk-or-[A-Za-z0-9_-]{24,}+", mixed),
    _format(
        "openai-key",
        "sk-",
        START + r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}+|[A-Za-z0-9]{20,}+)",
        mixed,
    ),
    _format("huggingface-token", "hf_ api_org_", START + r"(?:hf|api_org)_[A-Za-z0-9]{30,}+" + END),
    _format("groq-key", "gsk_", START + r"gsk_[A-Za-z0-9]{40,}+" + END),
    _format("xai-key", "xai-", START + r"xai-[A-Za-z0-9_-]{40,}+"),
    _format("perplexity-key", "pplx-", START + r"pplx-[A-Za-z0-9]{32,}+" + END, mixed),
    _format("replicate-token", "r8_", START + r"r8_[A-Za-z0-9]{32,}+" + END, mixed),
    _format("langsmith-key", "lsv2_", START + r"lsv2_(?:pt|sk)_[a-f0-9]{32}(?:_[a-f0-9]{10})?"),
    _format("tavily-key", "tvly-", START + r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}+", mixed),
    _format("nvidia-key", "nvapi-", START + r"nvapi-[A-Za-z0-9_-]{40,}+", mixed),
    _format("pinecone-key", "pcsk_", START + r"pcsk_[A-Za-z0-9_]{40,}+", mixed),
    _format("e2b-key", "e2b_", START + r"e2b_[a-f0-9]{40}" + END),
    _format("langfuse-key", "sk-lf-", START + r"sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    # Clouds
    _format("bedrock-key", "absk", START + r"ABSK[A-Za-z0-9+/]{60,}+=*+", mixed),
    _format("supabase-key", "sbp_", START + r"sbp_(?:oauth_)?[a-f0-9]{40}" + END),
    _format("supabase-key", "sb_secret_", START + r"sb_secret_[A-Za-z0-9_-]{20,}+", mixed),
    _format(
        "planetscale-token",
        "pscale_",
        START + r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}+",
        mixed,
    ),
    _format("netlify-token", "nfp_", START + r"nfp_[A-Za-z0-9]{32,}+" + END, mixed),
    _format("fly-token", "fm2_", START + r"fm2_[A-Za-z0-9+/=_-]{60,}+", mixed),
    _format(
        "aws-access-key",
        "akia asia abia acca",
        START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + END,
    ),
    _format(
        "aws-session-token", "iqojb3jpz2lux2vj", START + r"IQoJb3JpZ2luX2Vj[A-Za-z0-9+/=]{40,}+"
    ),
    _format(
        "aws-secret-key",
        "aws secretaccesskey",
        r"(?i:\baws[\W_]{0,3}secret(?:[\W_]{0,3}access)?(?:[\W_]{0,3}key)?|SecretAccessKey)"
        r"[\W_]{1,8}"
        r"(?:is[\W_]{1,4})?(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _scattered,
    ),
    _format("google-api-key", "aiza", START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _format("google-oauth-secret", "gocspx-", START + r"GOCSPX-[A-Za-z0-9_-]{24,}+"),
    _format("google-access-token", "ya29.", START + r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _format("google-refresh-token", "1//0", START + r"(1//0[A-Za-z0-9_-]{30,}+)"),
    _format(
        "azure-storage-key",
        "accountkey sharedaccesskey",
        r"(?i:AccountKey|SharedAccessKey)\s{0,3}=\s{0,3}([A-Za-z0-9+/]{20,}+={0,2})",
    ),
    _format(
        "azure-sas",
        "sig= sharedaccesssignature",
        r"(?:(?<=[?&;])|(?<=&amp;)|(?<=Signature ))sig=([A-Za-z0-9+/%]{30,}+=?)",
    ),
    _format("azure-client-secret", "8q~", START + r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}+"),
    _format("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", START + r"do[opr]_v1_[a-f0-9]{64}"),
    _format("databricks-token", "dapi", START + r"dapi[a-f0-9]{32}(?:-\d)?" + END),
    _format("cloudflare-key", "v1.0-", START + r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),
    _format("heroku-key", "hrku-", START + r"HRKU-[A-Za-z0-9_-]{30,}+"),
    _format("alibaba-access-key", "ltai", START + r"LTAI[A-Za-z0-9]{16,24}" + END, mixed),
    _format(
        "signed-url", "x-amz-", r"X-Amz-(?:Signature|Security-Token)=([A-Za-z0-9%/+=_-]{32,}+)"
    ),
    # Code and packages
    _format("github-token", "gho_ ghp_ ghu_ ghs_ ghr_", START + r"gh[opusr]_[A-Za-z0-9]{30,}+"),
    _format("github-token", "github_pat_", START + r"github_pat_[A-Za-z0-9_]{22,}+"),
    _format(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas- glimt- glagent-",
        START + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|imt|agent)-[A-Za-z0-9_.-]{20,}+",
        mixed,
    ),
    _format("npm-token", "npm_", START + r"npm_[A-Za-z0-9]{36}" + END),
    _format("pypi-token", "pypi-", START + r"pypi-AgE[A-Za-z0-9_-]{40,}+"),
    _format("rubygems-key", "rubygems_", START + r"rubygems_[a-f0-9]{48}" + END),
    _format("docker-token", "dckr_", START + r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+"),
    _format("bitbucket-token", "atbb atct", START + r"AT(?:BB|CTT3)[A-Za-z0-9_=-]{24,}+", mixed),
    _format("atlassian-token", "atatt3", START + r"ATATT3[A-Za-z0-9_=-]{50,}+"),
    _format("linear-key", "lin_api_", START + r"lin_api_[A-Za-z0-9]{32,}+"),
    _format(
        "notion-token", "ntn_ secret_", START + r"(?:ntn_|secret_)[A-Za-z0-9]{40,}+" + END, mixed
    ),
    _format("figma-token", "figd_", START + r"figd_[A-Za-z0-9_-]{36,}+"),
    _format("postman-key", "pmak-", START + r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _format("vault-token", "hvs. hvb. hvr.", START + r"hv[sbr]\.[A-Za-z0-9_-]{20,}+", mixed),
    _format(
        "terraform-token", ".atlasv1.", START + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+"
    ),
    _format("pulumi-token", "pul-", START + r"pul-[a-f0-9]{40}" + END),
    _format("grafana-token", "glsa_ glc_", START + r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}+", mixed),
    _format("newrelic-key", "nrak-", START + r"NRAK-[A-Z0-9]{27}" + END),
    _format("sentry-token", "sntrys_ sntryu_", START + r"sntry[su]_[A-Za-z0-9_+/=]{40,}+"),
    _format("doppler-token", "dp.pt. dp.st.", START + r"dp\.[ps]t\.[A-Za-z0-9_.-]{40,}+"),
    _format("1password-token", "ops_eyj", START + r"ops_eyJ[A-Za-z0-9_-]{60,}+"),
    _format("posthog-key", "phx_", START + r"phx_[A-Za-z0-9_-]{32,}+", mixed),
    _format("mapbox-token", "sk.eyj", START + r"sk\.eyJ[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    _format("age-key", "age-secret-key-", START + r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    # Messages, mail and money
    _format("slack-token", "xox", START + r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+", mixed),
    _format("slack-token", "xapp-", START + r"xapp-\d-[A-Za-z0-9-]{20,}+"),
    _format(
        "slack-webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,}+)",
    ),
    _format(
        "discord-webhook",
        "discord",
        r"discord(?:app)?\.com/api/webhooks/(\d{10,}+/[A-Za-z0-9_-]{40,}+)",
    ),
    _format(
        "discord-token",
        ".",
        r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])",
        _scattered,
    ),
    _format("telegram-token", ":aa", r"(?<![\d.])\d{8,10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
    _format(
        "stripe-key", "k_live_ k_test_", START + r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+", mixed
    ),
    _format("stripe-webhook-secret", "whsec_", START + r"whsec_[A-Za-z0-9+/=]{24,}+", mixed),
    _format("twilio-key", "sk", START + r"SK[a-f0-9]{32}" + END),
    _format("sendgrid-key", "sg.", START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}+"),
    _format("mailgun-key", "key-", START + r"key-[a-f0-9]{32}" + END),
    _format("mailchimp-key", "-us", START + r"[a-f0-9]{32}-us\d{1,2}" + END),
    _format(
        "shopify-token",
        "shpat_ shpca_ shppa_ shpss_",
        START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    ),
    _format(
        "square-token", "sq0 eaaa", START + r"(?:sq0(?:atp|csp)-|EAAA)[A-Za-z0-9_-]{40,}+", mixed
    ),
    _format("facebook-token", "eaac", START + r"EAAC[A-Za-z0-9]{80,}+"),
    _format("airtable-token", "pat", START + r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}" + END),
    # Whoever it is of
    _format(
        "jwt",
        "eyj",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?",
    ),
    _format(
        "jwt",
        "eyj",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",
    ),
    _format(
        "bearer-token",
        "bearer",
        r"(?i:\bbearer)(?:\s|%20|\\u0020){1,3}([A-Za-z0-9._~+/-]{12,}+=*+)",
        mixed,
    ),
    _format(
        "basic-auth",
        "basic",
        r"(?i:\bbasic)(?:\s|%20){1,3}([A-Za-z0-9+/]{8,}+={0,2})",
        decoded_pair,
    ),
    # No anchor within the run that is read for another one, so each is read once.
    _format(
        "docker-auth",
        "auth",
        r"(?<![\w+/])auth\W{1,8}?([A-Za-z0-9+/]{8,}+={0,2})(?=[\\\"'])",
        decoded_pair,
    ),
    _format(
        "npm-auth",
        "_auth",
        r"(?<![A-Za-z0-9_])_auth\s{0,3}=\s{0,3}[\"']?([A-Za-z0-9+/]{8,}+={0,2})",
        decoded_pair,
    ),
    _format(
        "authorization",
        "authorization",
        r"(?i:(?<![a-z])authorization)\\{0,8}[\"']?\s{0,3}[:=,]\s{0,3}\\{0,8}[\"']?"
        r"(?:(?i:token|api-?key|key|bot|sso-key|genie-?key)[ =]{1,3})?"
        r"([A-Za-z0-9._~+/:-]{16,}+=*+)(?![A-Za-z0-9._~+/:(\[-])",
        _credential,
    ),
)
