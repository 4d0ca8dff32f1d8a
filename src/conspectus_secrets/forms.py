"""Find secrets by their own form or a fixed place: a table with one form in each line.

A pattern repeats one class of characters at a time, possessively or within bounds, so that each
character of a text is looked at only a few times. No match has a quote or a backslash, so that JSON
stays JSON.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from conspectus_secrets.values import (
    MAX_REMEMBERED,
    Secret,
    has_letters_and_digits,
    is_placeholder,
    looks_random,
)

KEYS = r"""
anthropic-key         sk-ant-      sk-ant-[\w-]{16,}+
openrouter-key        sk-or-       sk-or-[\w-]{24,}+
langfuse-key          sk-lf-       sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}
openai-key            sk-          sk-(?:proj|svcacct|admin|None)-[\w-]{20,}+
openai-key            sk-          sk-[A-Za-z0-9]{20,}+
huggingface-token     hf_          hf_[A-Za-z0-9]{30,}+
groq-key              gsk_         gsk_[A-Za-z0-9]{40,}+
xai-key               xai-         xai-[\w-]{40,}+
perplexity-key        pplx-        pplx-[A-Za-z0-9]{32,}+
replicate-token       r8_          r8_[A-Za-z0-9]{32,}+
langsmith-key         lsv2_        lsv2_(?:pt|sk)_[a-f0-9]{32}(?:_[a-f0-9]{10})?
tavily-key            tvly-        tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}+
nvidia-key            nvapi-       nvapi-[\w-]{40,}+
pinecone-key          pcsk_        pcsk_\w{40,}+
e2b-key               e2b_         e2b_[a-f0-9]{40}\b
bedrock-key           absk         ABSK[A-Za-z0-9+/]{60,}+=*+
supabase-key          sbp_         sbp_(?:oauth_)?[a-f0-9]{40}\b
supabase-key          sb_secret_   sb_secret_[\w-]{20,}+
planetscale-token     pscale_      pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}+
netlify-token         nfp_         nfp_[A-Za-z0-9]{32,}+
fly-token             fm2_         fm2_[\w+/=-]{60,}+
aws-access-key        a            A(?:KI|SI|BI|CC)A[A-Z0-9]{16}\b
aws-session-token     iqojb3jp     IQoJb3JpZ2luX2Vj[A-Za-z0-9+/=]{40,}+
google-api-key        aiza         AIza[\w-]{35}(?![\w-])
google-oauth-secret   gocspx-      GOCSPX-[\w-]{24,}+
google-access-token   ya29.        ya29\.[\w-]{20,}+
azure-client-secret   8q~          [\w~.-]{3}8Q~[\w~.-]{31,34}+
digitalocean-token    _v1_         do[opr]_v1_[a-f0-9]{64}
databricks-token      dapi         dapi[a-f0-9]{32}(?:-\d)?\b
alibaba-access-key    ltai         LTAI[A-Za-z0-9]{16,24}\b
github-token          gh           gh[opusr]_[A-Za-z0-9]{30,}+
github-token          github_pat_  github_pat_\w{22,}+
gitlab-token          gl           gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|imt|agent)-[\w.-]{20,}+
npm-token             npm_         npm_[A-Za-z0-9]{36}\b
pypi-token            pypi-        pypi-AgE[\w-]{40,}+
rubygems-key          rubygems_    rubygems_[a-f0-9]{48}\b
docker-token          dckr_        dckr_(?:pat|oat)_[\w-]{20,}+
bitbucket-token       at           AT(?:BB|CTT3)[\w=-]{24,}+
atlassian-token       atatt3       ATATT3[\w=-]{50,}+
linear-key            lin_api_     lin_api_[A-Za-z0-9]{32,}+
notion-token          ntn_         ntn_[A-Za-z0-9]{40,}+
notion-token          secret_      secret_[A-Za-z0-9]{40,}+
figma-token           figd_        figd_[\w-]{36,}+
postman-key           pmak-        PMAK-[a-f0-9]{24}-[a-f0-9]{34}
vault-token           hv           hv[sbr]\.[\w-]{20,}+
terraform-token       .atlasv1.    [A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}+
pulumi-token          pul-         pul-[a-f0-9]{40}\b
grafana-token         gl           gl(?:sa|c)_[\w+/=]{32,}+
newrelic-key          nrak-        NRAK-[A-Z0-9]{27}\b
sentry-token          sntry        sntry[su]_[\w+/=]{40,}+
doppler-token         dp.          dp\.[ps]t\.[\w.-]{40,}+
1password-token       ops_eyj      ops_eyJ[\w-]{60,}+
posthog-key           phx_         phx_[\w-]{32,}+
mapbox-token          sk.eyj       sk\.eyJ[\w-]{16,}+\.[\w-]{16,}+
age-key               age-secret-  AGE-SECRET-KEY-1[A-Z0-9]{50,}+
slack-token           xox          xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}+
slack-token           xapp-        xapp-\d-[A-Za-z0-9-]{20,}+
discord-token         .            [MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}(?![\w-])
telegram-token        :aa          (?<!\.)\d{8,10}:AA[\w-]{32,33}(?![\w-])
stripe-key            k_live_      [srp]k_live_[A-Za-z0-9]{16,}+
stripe-key            k_test_      [srp]k_test_[A-Za-z0-9]{16,}+
stripe-webhook-secret whsec_       whsec_[A-Za-z0-9+/=]{24,}+
twilio-key            sk           SK[a-f0-9]{32}\b
sendgrid-key          sg.          SG\.[\w-]{16,32}\.[\w-]{32,}+
mailgun-key           key-         key-[a-f0-9]{32}\b
mailchimp-key         -us          [a-f0-9]{32}-us\d{1,2}\b
shopify-token         shp          shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}
square-token          sq0          sq0(?:atp|csp)-[\w-]{40,}+
facebook-token        eaac         EAAC[A-Za-z0-9]{80,}+
airtable-token        pat          pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b
jwt                   eyj          eyJ[\w-]{8,800}+\.eyJ[\w-]{8,}+(?:\.[\w-]*+)?
jwt                   eyj          eyJ[\w-]{8,800}+\.[\w-]*+(?:\.[\w-]{8,}+){3}
azure-storage-key     accountkey   AccountKey\s{0,3}=\s{0,3}(?P<value>[A-Za-z0-9+/]{20,}+={0,2})
azure-storage-key     sharedacc    SharedAccessKey=(?P<value>[A-Za-z0-9+/]{20,}+={0,2})
azure-sas             sig=         (?:(?<=[?&;\s])|(?<=&amp;))sig=(?P<value>[A-Za-z0-9+/%]{30,}+=?)
signed-url            x-amz-       X-Amz-(?:Signature|Security-Token)=(?P<value>[\w%/+=-]{32,}+)
slack-webhook         hooks.slack  hooks\.slack\.com/[a-z]{5,9}/(?P<value>[\w/-]{20,}+)
discord-webhook       discord      discord(?:app)?\.com/api/webhooks/(?P<value>\d{10,}+/[\w-]{40,}+)
bearer-token          bearer       (?i:\bbearer)(?:\s|%20){1,3}(?P<value>[\w.~+/-]{12,}+=*+)
basic-auth            basic        (?i:\bbasic)(?:\s|%20){1,3}(?P<value>[A-Za-z0-9+/]{8,}+={0,2})
basic-auth            auth         (?<![\w+/])_?auth\W{1,8}?(?P<value>[A-Za-z0-9+/]{8,}+={0,2})
url-token             ://          ://(?P<value>[\w-]{24,200}+)@(?=[\w\[${])
"""
"""Keys of providers: kind, a part in lower case that the text must have, pattern.

If a pattern has a group `value`, the rest of the match is not replaced.
"""

_WORD = r"""\\{0,4}["']?(?P<value>[^\s"'\\;|&<>()\[\]]++)"""
"""A word of a command, in quotes or bare."""

PLACES = {
    "aws-secret-key: secret": (
        r"(?i:\baws[\W_]{0,3}secret(?:[\W_]{0,3}access)?(?:[\W_]{0,3}key)?|SecretAccessKey)"
        r"[\W_]{1,8}(?:is[\W_]{1,4})?(?<![A-Za-z0-9/+])(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
    ),
    "authorization: authorization": (
        r"(?i:\bauthorization)\\{0,8}[\"']?\s{0,3}[:=]\s{0,3}\\{0,8}[\"']?(?:(?i:token|api-?key|key"
        r"|bot)[ =]{1,3})?(?P<value>[A-Za-z0-9._~+/-]{16,}+=*+)(?![(\[])"
    ),
    "url-password: ://": (
        r"""://[^\s/:@"'<>\[\]{}()$\\]{0,128}:(?P<value>[^\s/"'<>\\]{1,2048})@(?=[\w\[${])"""
    ),
    "session-id: sess sid": (
        r"(?i:\b(?:(?:php|j|asp\.net_)?sess(?:ion)?_?(?:id)?|connect\.sid|sid|\w{0,24}_session))="
        r"(?P<value>[A-Za-z0-9%._~+/-]{12,}+=*+)"
    ),
    "password: identified password": (
        # It begins with one set of letters, so that a search is fast.
        r"[iIıİpP](?:(?<!\w[pP])(?<=[pP])(?i:assword)"
        r"|(?<=[iIıİ])(?i:dentified\s{1,4}(?:with\s{1,4}\S{1,64}\s{1,4})?by))"
        r"\s{1,4}\\{0,4}'(?P<value>[^'\\\n]{3,256})\\{0,4}'"
    ),
    "password: machine": (
        r"\bmachine\s{1,8}\S{1,200}\s{1,8}(?:login\s{1,8}\S{1,200}\s{1,8})?password\s{1,8}" + _WORD
    ),
    "password: sshpass": r"\bsshpass\s{1,4}-p\s{0,4}" + _WORD,
    "password: stdin with-token sudo": (
        rf"\b(?:echo|printf)\s{{1,4}}(?:-[ne]\s{{1,4}})?{_WORD}\\{{0,4}}[\"']?\s{{0,4}}\|\s{{0,4}}"
        r"(?:[^\n|;&]{0,160}?\s--(?:password-stdin|with-token)\b|sudo\s[^\n|;&]{0,40}?-S\b)"
    ),
}
"""Values at a fixed place, in addresses, headers, SQL and commands: kind, hints, pattern."""

_REACH = 260  # most characters between a command and its option
_ENDS_COMMAND = r"(?P<end>(?<!\\)\n|[|;]|&(?=[&\s]))"


def _command(names: str, option: str) -> re.Pattern[str]:
    """Return a pattern for a command's names, an option with its value, and its end."""
    return re.compile(rf"(?P<command>{names})|(?<=\s){option}|{_ENDS_COMMAND}")


COMMANDS = {
    "mysql mariadb": _command(r"\b(?:mysql\w{0,8}|mariadb)\b", "-p" + _WORD),
    "login": _command(r"\b(?:docker|podman|az|oc) login\b", "-p[ =]" + _WORD),
    "mongo redis-cli sqlcmd ldap": _command(
        r"\b(?:mongo\w{0,8}|redis-cli|sqlcmd|ldap\w{3,8})\b", "-[apwP] " + _WORD
    ),
    "curl http": _command(
        r"\b(?:curl|https?)\b",
        r"(?:-[A-Za-z]{0,6}u[ =]?|--(?:proxy-)?user[ =])\\{0,4}[\"']?[^\s:\"'\\]{1,128}:"
        r"(?P<value>[^\s\"'\\]{3,}+)",
    ),
}
"""Passwords in options of commands, by the hints of each."""

_COOKIES = re.compile(r"(?i:\b(?:set-)?cookie)\\{0,4}[\"']?\s{0,3}[:=]\s{0,3}\\{0,4}[\"']?")
_COOKIE = re.compile(r"\s{0,2}(?P<name>[\w.$!%*+-]{1,64}+)=(?P<value>[^\s;,\"'\\]*+);?")


def _is_pair_in_base64(encoded: str) -> bool:
    """Tell whether it is `user:password` in base64."""
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    user, _, password = text.partition(":")
    return bool(user and password) and text.isprintable()


_remembered_placeholder = lru_cache(1_024)(is_placeholder)  # texts repeat commands


def _can_be_password(value: str) -> bool:
    is_empty = _remembered_placeholder if len(value) <= MAX_REMEMBERED else is_placeholder
    return len(value) >= 3 and not is_empty(value)


_CHECKS: dict[str, Callable[[str], bool]] = {
    "aws-secret-key": looks_random,
    "discord-token": looks_random,
    "basic-auth": _is_pair_in_base64,
    "authorization": lambda value: (
        sum(map(str.isdigit, value)) >= 2 and has_letters_and_digits(value)
    ),
    "url-password": _can_be_password,
    "password": _can_be_password,
}
"""What a value must be. Default: letters and digits."""


_WHOLE = r"(?<![A-Za-z0-9])(?P<value>{})(?![A-Za-z0-9])"

FORMS: list[tuple[str, tuple[str, ...], re.Pattern[str]]] = [
    (kind, (hint,), re.compile(form if "(?P<value>" in form else _WHOLE.format(form), re.ASCII))
    for kind, hint, form in (line.split() for line in KEYS.split("\n")[1:-1])
]
for key, form in PLACES.items():
    kind, _, hints = key.partition(": ")
    FORMS.append((kind, tuple(hints.split()), re.compile(form)))


def formed_secrets(text: str, lower: str) -> Iterator[Secret]:
    """Yield secrets of the table; `lower` is the text in lower case."""
    for kind, hints, pattern in FORMS:
        if any(hint in lower for hint in hints):
            is_real = _CHECKS.get(kind, has_letters_and_digits)
            for match in pattern.finditer(text):
                if is_real(match["value"]):
                    yield Secret(*match.span("value"), kind)
    for names, pattern in COMMANDS.items():
        if any(name in lower for name in names.split()):
            yield from _in_commands(text, pattern)
    at = 0
    for header in _COOKIES.finditer(text) if "cookie" in lower else ():
        at = max(at, header.end())
        while (cookie := _COOKIE.match(text, at)) is not None:
            if len(cookie["value"]) >= 8 and has_letters_and_digits(cookie["value"]):
                yield Secret(*cookie.span("value"), "cookie")
            at = cookie.end()


def _in_commands(text: str, pattern: re.Pattern[str]) -> Iterator[Secret]:
    """Yield passwords in options of a command, in one pass."""
    is_real = _CHECKS["password"]
    begun: int | None = None  # the end of the newest command in this line
    for match in pattern.finditer(text):
        if match["command"] is not None:
            begun = match.end()
        elif match["end"] is not None:
            begun = None
        elif begun is not None and match.start() - begun <= _REACH and is_real(match["value"]):
            yield Secret(*match.span("value"), "password")
