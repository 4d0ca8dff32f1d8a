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


def _key(kind: str, hints: str, pattern: str, real: Callable[[str], bool] | None = None) -> Format:
    return Format.of(kind, hints, START + pattern, real)


FORMATS: tuple[Format, ...] = (
    # Models and their hosts
    _key("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _key("openrouter-key", "sk-or-", r"sk-or-[A-Za-z0-9_-]{24,}+", mixed),
    _key(
        "openai-key",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}+|[A-Za-z0-9]{20,}+)",
        mixed,
    ),
    _key("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}+" + END),
    _key("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}+" + END),
    _key("xai-key", "xai-", r"xai-[A-Za-z0-9_-]{40,}+"),
    _key("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{32,}+" + END, mixed),
    _key("replicate-token", "r8_", r"r8_[A-Za-z0-9]{32,}+" + END, mixed),
    _key("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}(?:_[a-f0-9]{10})?"),
    _key("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}+", mixed),
    _key("nvidia-key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,}+", mixed),
    _key("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,}+", mixed),
    _key("e2b-key", "e2b_", r"e2b_[a-f0-9]{40}" + END),
    _key("langfuse-key", "sk-lf-", r"sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    # Clouds
    _key("bedrock-key", "absk", r"ABSK[A-Za-z0-9+/]{60,}+=*+", mixed),
    _key("supabase-key", "sbp_", r"sbp_(?:oauth_)?[a-f0-9]{40}" + END),
    _key("supabase-key", "sb_secret_", r"sb_secret_[A-Za-z0-9_-]{20,}+", mixed),
    _key("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}+", mixed),
    _key("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{32,}+" + END, mixed),
    _key("fly-token", "fm2_", r"fm2_[A-Za-z0-9+/=_-]{60,}+", mixed),
    _key("aws-access-key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + END),
    _key("aws-session-token", "iqojb3jpz2lux2vj", r"IQoJb3JpZ2luX2Vj[A-Za-z0-9+/=]{40,}+"),
    _format(
        "aws-secret-key",
        "aws secretaccesskey",
        r"(?i:\baws[\W_]{0,3}secret(?:[\W_]{0,3}access)?(?:[\W_]{0,3}key)?|SecretAccessKey)"
        r"[\W_]{1,8}"
        r"(?:is[\W_]{1,4})?(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _scattered,
    ),
    _key("google-api-key", "aiza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _key("google-oauth-secret", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{24,}+"),
    _key("google-access-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}+"),
    _key("google-refresh-token", "1//0", r"(1//0[A-Za-z0-9_-]{30,}+)"),
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
    _key("azure-client-secret", "8q~", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}+"),
    _key("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _key("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?" + END),
    _key("cloudflare-key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),
    _key("heroku-key", "hrku-", r"HRKU-[A-Za-z0-9_-]{30,}+"),
    _key("alibaba-access-key", "ltai", r"LTAI[A-Za-z0-9]{16,24}" + END, mixed),
    _format(
        "signed-url", "x-amz-", r"X-Amz-(?:Signature|Security-Token)=([A-Za-z0-9%/+=_-]{32,}+)"
    ),
    # Code and packages
    _key("github-token", "gho_ ghp_ ghu_ ghs_ ghr_", r"gh[opusr]_[A-Za-z0-9]{30,}+"),
    _key("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}+"),
    _key(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas- glimt- glagent-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|imt|agent)-[A-Za-z0-9_.-]{20,}+",
        mixed,
    ),
    _key("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}" + END),
    _key("pypi-token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{40,}+"),
    _key("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{48}" + END),
    _key("docker-token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}+"),
    _key("bitbucket-token", "atbb atct", r"AT(?:BB|CTT3)[A-Za-z0-9_=-]{24,}+", mixed),
    _key("atlassian-token", "atatt3", r"ATATT3[A-Za-z0-9_=-]{50,}+"),
    _key("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}+"),
    _key("notion-token", "ntn_ secret_", r"(?:ntn_|secret_)[A-Za-z0-9]{40,}+" + END, mixed),
    _key("figma-token", "figd_", r"figd_[A-Za-z0-9_-]{36,}+"),
    _key("postman-key", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _key("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{20,}+", mixed),
    _key("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+"),
    _key("pulumi-token", "pul-", r"pul-[a-f0-9]{40}" + END),
    _key("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}+", mixed),
    _key("newrelic-key", "nrak-", r"NRAK-[A-Z0-9]{27}" + END),
    _key("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9_+/=]{40,}+"),
    _key("doppler-token", "dp.pt. dp.st.", r"dp\.[ps]t\.[A-Za-z0-9_.-]{40,}+"),
    _key("1password-token", "ops_eyj", r"ops_eyJ[A-Za-z0-9_-]{60,}+"),
    _key("posthog-key", "phx_", r"phx_[A-Za-z0-9_-]{32,}+", mixed),
    _key("mapbox-token", "sk.eyj", r"sk\.eyJ[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
    _key("age-key", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    # Messages, mail and money
    _key("slack-token", "xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+", mixed),
    _key("slack-token", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}+"),
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
    _key("stripe-key", "k_live_ k_test_", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+", mixed),
    _key("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}+", mixed),
    _key("twilio-key", "sk", r"SK[a-f0-9]{32}" + END),
    _key("sendgrid-key", "sg.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}+"),
    _key("mailgun-key", "key-", r"key-[a-f0-9]{32}" + END),
    _key("mailchimp-key", "-us", r"[a-f0-9]{32}-us\d{1,2}" + END),
    _key("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _key("square-token", "sq0 eaaa", r"(?:sq0(?:atp|csp)-|EAAA)[A-Za-z0-9_-]{40,}+", mixed),
    _key("facebook-token", "eaac", r"EAAC[A-Za-z0-9]{80,}+"),
    _key("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}" + END),
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
