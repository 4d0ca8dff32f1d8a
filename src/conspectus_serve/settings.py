"""Read the `serve:` section of the configuration file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from conspectus.archive import default_archive_path
from conspectus.config import SummarizationConfig, load_config
from conspectus.config.reading import ConfigSource, read_section
from conspectus.errors import ConfigError
from conspectus.messages.alternation import AlternateRoles
from conspectus.model.windows import input_limit_named

SECTION = "serve"
LARGEST_BODY = 64_000_000
"""The most bytes of a request by default; twice Anthropic's limit."""

DEFAULT_SUMMARIZATION = {
    "enabled": True,
    "trigger": {"type": "fraction", "value": 0.85},
    "keep": {"type": "fraction", "value": 0.35},
}
"""Summarization settings if the file has no trigger. Compactions are few, because each makes the
provider's cache of the history invalid."""

UPSTREAM_DESCRIPTION = "the provider, such as https://api.openai.com; also as --upstream"
SHORTEST_TOKEN = 16
"""The fewest characters of a token; a shorter one can be guessed."""

CONTAINER_HOSTS = ("host.docker.internal", "host.containers.internal", "gateway.docker.internal")
"""Names by which Docker and Podman call the machine that they run on."""

_PORT = r"[0-5]?\d{1,4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5]"

FORMS = {
    "upstream": (
        r"https?://[^/@?#]+(?:/[^?#]*)?(?<!/completions)(?<!/messages)(?<!/responses)",
        "an address such as https://api.openai.com, without the path of a request",
    ),
    "listen": (f".+:(?:{_PORT})", "host:port, such as 127.0.0.1:8377"),
    "tenants": (r"one|key|(?:header|claim):\s*\S+", "one, key, header:NAME or claim:NAME"),
    "proxy": (r"https?://[^/:]\S*", "a proxy's address such as http://127.0.0.1:3128"),
}
"""Forms of texts, and what to write if a text has another form."""


class ServeSettings(BaseModel):
    """Settings of the endpoint, the keys of the section `serve:`. `docs/serve.md` explains them.

    Example:
        >>> ServeSettings(upstream="http://127.0.0.1:8000/v1/").upstream
        'http://127.0.0.1:8000/v1'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    upstream: Annotated[str, Field(description=UPSTREAM_DESCRIPTION)]
    listen: str = "127.0.0.1:8377"
    token: Annotated[str | None, Field(min_length=SHORTEST_TOKEN)] = Field(None, repr=False)
    tenants: str | None = None
    hosts: list[str] = []
    containers: bool = False
    archive: str | None = None
    secret_file: Path | None = None
    window: PositiveInt | None = None
    windows: dict[str, PositiveInt] = {}
    max_body_bytes: PositiveInt = LARGEST_BODY
    on_stuck: Literal["refuse", "send"] = "refuse"
    compaction: Literal["here", "upstream"] = "here"
    alternate_roles: AlternateRoles = "auto"
    recall: Literal["auto", "on", "off"] = "auto"
    recall_tokens: PositiveInt = 512
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    keep_alive: Annotated[float, Field(gt=0, le=3_600)] = 10.0
    proxy: str | None = Field(None, repr=False)
    ca_file: Path | None = None

    @field_validator(*FORMS)
    @classmethod
    def _has_its_form(cls, text: str | None, about: ValidationInfo) -> str | None:
        pattern, description = FORMS[str(about.field_name)]
        if text is not None and not re.fullmatch(pattern, text):
            raise ValueError(f"write {description}")
        return text.rstrip("/") if text and about.field_name == "upstream" else text

    @field_validator("alternate_roles", "recall", mode="before")
    @classmethod
    def _on_and_off(cls, value: object) -> object:  # YAML reads `on` and `off` as true and false
        return {"False": "off", "True": "on"}.get(str(value), value)

    @model_validator(mode="after")
    def _needs_a_token(self) -> Self:
        if self.token is None and not is_loopback(self.host, private=self.containers):
            remedy = "set a token (--token, or $VARIABLE in the file), or listen on 127.0.0.1"
            raise ValueError(f"{self.host} can be reached by others: {remedy}")
        if self.token is None and (self.tenants or "").startswith(("header:", "claim:")):
            remedy = "set a token, which only clients have that may say it"
            raise ValueError(f"tenants: {self.tenants} believes what clients say: {remedy}")
        return self

    @property
    def tenant_source(self) -> str:
        """How tenants are named: `one`, `key`, `header:NAME` or `claim:NAME`."""
        has_one_user = is_loopback(self.host) and self.token is None and not self.hosts
        return self.tenants or ("one" if has_one_user else "key")

    @property
    def archive_address(self) -> str:
        """The path or URL of the archive."""
        return self.archive or str(default_archive_path())

    @property
    def own_hosts(self) -> frozenset[str]:
        """The names of this machine other than those of loopback, in small letters."""
        names = (*self.hosts, *(CONTAINER_HOSTS if self.containers else ()))
        return frozenset(map(str.lower, names))

    @property
    def host(self) -> str:
        """The host to listen on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port to listen on; 0 for any free port."""
        return int(self.listen.rpartition(":")[2])

    def window_of(self, model: str) -> int | None:
        """Return the input limit in the settings for a model, in tokens.

        Example:
            >>> settings = ServeSettings(upstream="http://h", windows={"gpt-5*": 272_000})
            >>> settings.window_of("gpt-5-mini"), settings.window_of("other")
            (272000, None)
        """
        return input_limit_named(model, self.windows) or self.window


@lru_cache(256)
def is_loopback(host: str, *, private: bool = False) -> bool:
    """Tell whether only this machine reaches an address, or a `private` network of its own."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    is_own_network = private and address.is_private and not address.is_unspecified
    return address.is_loopback or is_own_network


def load_settings(
    path: str | Path | None = None, given: Mapping[str, Any] | None = None
) -> tuple[ServeSettings, SummarizationConfig]:
    """Read the settings of the endpoint, and those of summarization.

    Args:
        path: a YAML file with sections `serve:` and `summarization:`; None: no file. If
            `summarization:` has no trigger, requests are compacted at 85 % of their window.
        given: settings that replace the settings of the file; None values are ignored.

    Raises:
        ConfigError: the file cannot be read, or a setting is invalid. The error has the line of
            each invalid setting.

    Example:
        >>> settings, config = load_settings(given={"upstream": "http://127.0.0.1:8000"})
        >>> settings.port, config.enabled
        (8377, True)
    """
    options = {name: value for name, value in (given or {}).items() if value is not None}
    section: Any = {}
    config = SummarizationConfig.model_validate(DEFAULT_SUMMARIZATION)
    source = ConfigSource(section=SECTION)
    if path is not None:
        file = Path(path).expanduser()
        summarization, _ = read_section(file)
        has_trigger = isinstance(summarization, Mapping) and "trigger" in summarization
        defaults = {"enabled": True} if has_trigger else DEFAULT_SUMMARIZATION
        config = load_config(file, defaults=defaults)
        section, source = read_section(file, SECTION)
        if not isinstance(section, Mapping | None):
            raise source.error((), f"'{SECTION}' holds keys such as 'upstream:'")
    values = {**(section or {}), **options}
    if values.get("archive") is None:
        values["archive"] = config.archive
    try:
        return ServeSettings.model_validate(values), config
    except ValidationError as error:
        mistakes = source.mistakes(error, ServeSettings)
    mistaken_options = [at for at in mistakes if at and at[0] in options]
    of_options = [
        ConfigSource().problem((), f"--{at[0]}: {mistakes.pop(at)}") for at in mistaken_options
    ]
    raise ConfigError((*of_options, *source.problems(mistakes)))
