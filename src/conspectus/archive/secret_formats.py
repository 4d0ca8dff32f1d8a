"""What secrets of known providers look like, and where else one stands by its form alone.

Each pattern begins with what is fixed and repeats one class of characters at a time, possessively,
so that no text takes more than a few looks at each of its characters.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

START = r"(?<![A-Za-z0-9])"
"""No letter or digit before: a secret does not begin within a word, a hash or an encoded image."""

END = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Format:
    """One form of secret.

    Attributes:
        kind: what replaces it says this.
        hints: the text holds one of these, or is not searched; in lower case.
        pattern: what is found; group 1, where there is one, is the secret.
        real: says of a find whether it is one; None for always.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    real: Callable[[str], bool] | None = None


def mixed(secret: str) -> bool:
    """Letters and digits: no plain word, no plain number."""
    return any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)


def _scattered(secret: str) -> bool:
    """Digits and letters of both cases, as in random text; no name made of words."""
    return mixed(secret) and any(c.isupper() for c in secret) and any(c.islower() for c in secret)


def decoded_pair(encoded: str) -> bool:
    """Whether it is `user:password` in base64."""
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    user, colon, password = text.partition(":")
    return bool(colon and user and password) and text.isprintable()


def _format(
    kind: str, hints: str, pattern: str, real: Callable[[str], bool] | None = None
) -> Format:
    return Format(kind, tuple(hints.split()), re.compile(pattern), real)


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
    # Clouds
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
        "aws",
        r"(?i:\baws[\W_]{0,3}secret)[\W_]{1,4}(?:is[\W_]{1,4})?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
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
        r"(?<![\w.-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])",
        _scattered,
    ),
    _format("telegram-token", ":aa", r"(?<![\d.])\d{8,10}:AA[A-Za-z0-9_-]{32,33}(?![\w-])"),
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
    _format("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+(?:\.[\w-]*+)?"),
    _format("jwt", "eyj", r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]*+\.[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+"),
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
    _format(
        "docker-auth", "auth", r"\bauth\W{1,8}?([A-Za-z0-9+/]{8,}+={0,2})(?=[\\\"'])", decoded_pair
    ),
)

_BEGIN = re.compile(
    r"-----?\s?BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?\s?-----?"
    r"|PuTTY-User-Key-File-\d:"
)
_END_MARK = re.compile(r"-----?\s?END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?\s?-----?")
_MAC = re.compile(r"Private-MAC: ?[a-f0-9]{20,128}")
_BODY = re.compile(r"[A-Za-z0-9+/=]{40,}+")
_CUT_OFF = re.compile(r"(?:[ \t\"'+,>|-]|\\+[nrt]|\s|[A-Za-z0-9+/=]{16,}+)*+")

_BETWEEN = r"[\s\"'+,>|\\-]"
_HEAD_LOST = re.compile(
    rf"{_BETWEEN}*+(?:[A-Za-z0-9+/=]{{1,15}}+{_BETWEEN}++){{0,2}}+"
    rf"(?:{_BETWEEN}|[A-Za-z0-9+/=]{{16,}}+)*+(?:[A-Za-z0-9+/=]{{1,15}}+\Z)?+"
)
"""A key without its beginning, read backwards: its last lines may be short, and so may be the one
at which the text was cut."""

LONGEST = 40_000
"""Characters of a private key at most, of which the longest have some 13,000."""

LEAST = 40
"""Characters of base64 in a row without which it only speaks of a key."""


def private_keys(text: str) -> list[tuple[int, int, str]]:
    """Where private keys stand, whole or cut off: begin, end and kind.

    Example:
        >>> private_keys("-----BEGIN PRIVATE KEY-----\\n...\\n-----END PRIVATE KEY-----")
        []
    """
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return []
    found = []
    begins = list(_BEGIN.finditer(text))
    ends = [(m.start(), m.end()) for m in (*_END_MARK.finditer(text), *_MAC.finditer(text))]
    ends.sort()
    at = 0
    for number, begin in enumerate(begins):
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        limit = min(limit, begin.end() + LONGEST)
        while at < len(ends) and ends[at][0] < begin.end():
            at += 1
        if at < len(ends) and ends[at][1] <= limit:
            stop = ends[at][1]
        else:  # cut off: as far as it looks like one
            cut = _CUT_OFF.match(text, begin.end(), limit)
            stop = cut.end() if cut else begin.end()
        body = text[begin.end() : stop]
        if _BODY.search(body) or _lines_of_key(body):
            while stop > begin.end() and text[stop - 1].isspace():
                stop -= 1
            found.append((begin.start(), stop, "private-key"))
    return sorted([*found, *_without_beginning(text, found)])


def _without_beginning(
    text: str, found: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Where keys stand of which only the last lines were kept, as by `tail`."""
    stops = [stop for _, stop, _ in found]
    before = 0
    for end in _END_MARK.finditer(text):
        known = bisect_left(stops, end.end())
        if known < len(found) and found[known][0] <= end.start():
            before = end.end()
            continue
        head = text[max(before, end.start() - LONGEST) : end.start()]
        body = head[::-1]
        lost = _HEAD_LOST.match(body)
        body = body[: lost.end()].rstrip() if lost else ""
        if _BODY.search(body) or _lines_of_key(body):
            yield end.start() - len(body), end.end(), "private-key"
        before = end.end()


def _lines_of_key(body: str) -> bool:
    """Whether short lines make up a key together."""
    return sum(map(len, re.findall(r"[A-Za-z0-9+/=]{12,}+", body))) >= LEAST
