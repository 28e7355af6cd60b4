"""The `SVC_*` settings in one frozen object, validated at start."""

import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from svc import parsers
from svc.errors import StartError
from svc.parsers import MailServer as MailServer
from svc.parsers import Network
from svc.secret_files import with_secret_files

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
GITHUB = "https://github.com"


@dataclass(frozen=True)
class IdentityProvider:
    """The settings `SVC_OAUTH_<NAME>_*`. `issuer` is exactly the provider's own identifier (for GitHub its website)."""

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    domains: tuple[str, ...] = ()  # verified addresses there get an account although sign-up is closed


@dataclass(frozen=True)
class Config:
    """The configuration. Fields up to `smtp_url` are settings of the environment, and tests set the last ones."""

    host: str = "127.0.0.1"
    port: int = 8443
    base_url: str = ""  # empty: derived from host and port
    tls: str = "auto"
    tls_cert: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[Network, ...] = ()
    data_dir: Path = Path("data")
    new_secrets: str | None = None  # the id of the installation whose master key is lost
    signup: str = "open"
    passwords: bool = True
    logins_per_minute: int = 5  # this and the next two: of one address
    signups_per_hour: int = 10
    resets_per_hour: int = 3
    account_bytes: int = 1024**3
    keep_conversations_days: int | None = None  # this and the next two: None keeps everything
    keep_runs_days: int | None = None
    keep_files_days: int | None = None
    cors_origins: tuple[str, ...] = ("*",)
    connections: int = 4096
    connections_per_address: int = 1024
    metrics_token: str | None = field(default=None, repr=False)
    catalog: Path | None = None
    discover: bool | None = None  # None: only in local posture
    builtin: bool = True
    agent_fetch: bool = False
    byok_private: bool | None = None  # None: only in local posture
    payments: str | None = None  # None: sandbox in local posture, else none
    stripe_secret_key: str | None = field(default=None, repr=False)
    stripe_webhook_secret: str | None = field(default=None, repr=False)
    stripe_api: str = "https://api.stripe.com"
    smtp_url: MailServer | None = None

    # The whole environment, with secrets in place of their files: the catalog's `api_key_env` names one of its variables.
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    identity_providers: tuple[IdentityProvider, ...] = ()  # from `SVC_OAUTH_*`
    clock: Callable[[], float] = time.time  # seconds
    monotonic: Callable[[], float] = time.monotonic
    log_fd: int = 2
    argon2_memory_kib: int = 19456
    argon2_time_cost: int = 2
    # (host, port, account id) -> addresses; None: the system's resolver
    resolve: Callable[[str, int, str], Awaitable[Iterable[str]]] | None = None

    def __post_init__(self) -> None:
        if not self.base_url:
            object.__setattr__(self, "base_url", f"https://{_url_host(self.host)}:{self.port}")

    @property
    def local_posture(self) -> bool:
        """Whether only this machine can reach the service. Then conveniences are on by default."""
        base_host = urlsplit(self.base_url).hostname or ""
        return (
            parsers.is_loopback(self.host) and self.tls != "proxy" and not self.trusted_proxies and parsers.is_loopback(base_host)
        )

    @property
    def discovers(self) -> bool:
        """Whether the start searches for local model servers: by default in local posture without a catalog."""
        return self.discover if self.discover is not None else self.local_posture and self.catalog is None

    @property
    def private_addresses(self) -> bool:
        """Whether users' providers and `fetch_url` may use private and loopback addresses."""
        return self.local_posture if self.byok_private is None else self.byok_private

    @property
    def payment_mode(self) -> str:
        """The payment processor: `stripe`, `sandbox` (test money, the default in local posture) or `none`."""
        return self.payments or ("sandbox" if self.local_posture else "none")

    def at_port(self, port: int) -> "Config":
        """Return the configuration with the port that was bound, in the derived base URL too."""
        derived = Config(host=self.host, port=self.port).base_url == self.base_url
        return replace(self, port=port, base_url="" if derived else self.base_url)

    def trusts(self, address: str) -> bool:
        if not self.trusted_proxies:
            return False
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self.trusted_proxies)


def from_environ(environ: Mapping[str, str]) -> Config:
    """Return the configuration of the `SVC_*` variables of `environ`. `<NAME>_FILE` may name the file that holds a secret.

    Raises StartError with one line that names the first invalid or unknown variable.
    """
    values: dict[str, object] = {}
    parts: dict[str, dict[str, Any]] = {}
    settings = with_secret_files(environ, is_secret)
    for name in sorted(settings):
        if not name.startswith("SVC_"):
            continue
        of_provider = _OAUTH.fullmatch(name)
        parse = _OAUTH_PARTS[of_provider[2]] if of_provider else SETTINGS.get(name)
        if parse is None:
            raise StartError(f"{name} is not a setting of this service; svc/OPERATING.md lists them")
        text = settings[name].strip()
        if not text:
            continue
        try:
            if not text.isprintable():
                raise ValueError("must be printable characters")
            value = parse(text)
        except ValueError as error:
            # SVC_TLS_KEY must name a file, but may be set to the key itself by mistake.
            secret = is_secret(name) or name == "SVC_TLS_KEY" or "@" in text or not text.isprintable()
            raise StartError(f"{name} {error}{'' if secret else f', not {text[:100]!r}'}") from None
        if of_provider:
            parts.setdefault(of_provider[1].lower(), {})[of_provider[2].lower()] = value
        else:
            values[name[4:].lower()] = value
    config = Config(**values, identity_providers=_identity_providers(parts), environ=settings)  # type: ignore[arg-type]
    _check_together(config)
    return config


def is_secret(name: str) -> bool:
    """Whether the setting `name` is a secret. No message shows it, and `<NAME>_FILE` may name its file."""
    return name in SECRET_SETTINGS or bool(re.fullmatch(r"SVC_OAUTH_[A-Z0-9_]+_CLIENT_SECRET", name))


def _identity_providers(parts: Mapping[str, Mapping[str, Any]]) -> tuple[IdentityProvider, ...]:
    found = []
    for name, given in parts.items():
        values = {"issuer": GITHUB, **given} if name == "github" else given
        missing = [f"SVC_OAUTH_{name}_{part}".upper() for part in ("issuer", "client_id", "client_secret") if part not in values]
        if missing:
            raise StartError(f"set {' and '.join(missing)} too: SVC_OAUTH_{name.upper()}_* is incomplete")
        found.append(IdentityProvider(name, **values))
    return tuple(found)


def _check_together(config: Config) -> None:
    if config.tls == "files" and not (config.tls_cert and config.tls_key):
        raise StartError("SVC_TLS=files needs SVC_TLS_CERT and SVC_TLS_KEY")
    if config.tls != "files" and (config.tls_cert or config.tls_key):
        raise StartError("SVC_TLS_CERT and SVC_TLS_KEY are only for SVC_TLS=files")
    if config.tls == "proxy" and not config.trusted_proxies:
        raise StartError("SVC_TLS=proxy needs SVC_TRUSTED_PROXIES, the addresses of the proxy")
    if not config.passwords and not config.identity_providers:
        raise StartError("SVC_PASSWORDS=0 needs an identity provider (SVC_OAUTH_<NAME>_*): without one nobody can sign in")
    stripe_secrets = [config.stripe_secret_key, config.stripe_webhook_secret]
    if config.payments == "stripe" and not all(stripe_secrets):
        raise StartError("SVC_PAYMENTS=stripe needs SVC_STRIPE_SECRET_KEY and SVC_STRIPE_WEBHOOK_SECRET")
    if config.payments is None and any(stripe_secrets):
        raise StartError("SVC_STRIPE_SECRET_KEY and SVC_STRIPE_WEBHOOK_SECRET are only for SVC_PAYMENTS=stripe")
    for name, path in (("SVC_TLS_CERT", config.tls_cert), ("SVC_TLS_KEY", config.tls_key), ("SVC_CATALOG", config.catalog)):
        if path and not _is_file(path):
            raise StartError(f"{name} must name a file" + ("" if name == "SVC_TLS_KEY" else f", and {str(path)[:100]} is none"))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be read
        return False


def _url_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - bound everywhere: this machine's own name for links
        return "localhost"
    return f"[{host}]" if ":" in host else host


_COUNT = parsers.integer(1, 65535, "must be an integer from 1 to 65535")
_PER_ADDRESS = parsers.integer(1, 100_000, "must be an integer from 1 to 100000")
_DAYS = parsers.integer(1, 36_500, "must be an integer from 1 to 36500")
_PATH = parsers.checked(lambda text: Path(text).expanduser(), "must not use the home folder of an unknown user")
_SECRET = parsers.matching("[!-~]+", "must be printable ASCII without spaces")
_SWITCH = parsers.checked(parsers.switch, "must be 0 or 1")
SETTINGS: dict[str, Callable[[str], object]] = {
    "SVC_HOST": parsers.checked(parsers.host, "must be an IP address or a name of this machine"),
    "SVC_PORT": parsers.integer(0, 65535, "must be an integer from 0 to 65535 (0 picks a free port)"),
    "SVC_BASE_URL": parsers.checked(
        partial(parsers.origin, default_ports={"https": 443}), "must have the form https://HOST or https://HOST:PORT"
    ),
    "SVC_TLS": parsers.one_of("auto", "files", "proxy"),
    "SVC_TLS_CERT": _PATH,
    "SVC_TLS_KEY": _PATH,
    "SVC_TRUSTED_PROXIES": parsers.checked(parsers.networks, "must be a comma-separated list of IP addresses or networks"),
    "SVC_DATA_DIR": _PATH,
    "SVC_NEW_SECRETS": parsers.matching("[0-9a-f]{8}", "must be the 8 hexadecimal digits that the refused start prints"),
    "SVC_SIGNUP": parsers.one_of("open", "closed"),
    "SVC_PASSWORDS": _SWITCH,
    "SVC_LOGINS_PER_MINUTE": _PER_ADDRESS,
    "SVC_SIGNUPS_PER_HOUR": _PER_ADDRESS,
    "SVC_RESETS_PER_HOUR": _PER_ADDRESS,
    "SVC_ACCOUNT_BYTES": parsers.integer(1024**2, 10**15, "must be an integer of 1048576 or more"),
    "SVC_KEEP_CONVERSATIONS_DAYS": _DAYS,
    "SVC_KEEP_RUNS_DAYS": _DAYS,
    "SVC_KEEP_FILES_DAYS": _DAYS,
    "SVC_CORS_ORIGINS": parsers.checked(
        parsers.origins, "must be * or a comma-separated list of origins such as https://app.example"
    ),
    "SVC_CONNECTIONS": _COUNT,
    "SVC_CONNECTIONS_PER_ADDRESS": _COUNT,
    "SVC_METRICS_TOKEN": parsers.matching("[ -~]{16,}", "must be at least 16 printable ASCII characters"),
    "SVC_CATALOG": _PATH,
    "SVC_DISCOVER": _SWITCH,
    "SVC_BUILTIN": _SWITCH,
    "SVC_AGENT_FETCH": _SWITCH,
    "SVC_BYOK_PRIVATE": _SWITCH,
    "SVC_PAYMENTS": parsers.one_of("stripe", "sandbox", "none"),
    "SVC_STRIPE_SECRET_KEY": _SECRET,
    "SVC_STRIPE_WEBHOOK_SECRET": _SECRET,
    "SVC_STRIPE_API": parsers.api,
    "SVC_SMTP_URL": parsers.mail_server,
}
# SVC_OAUTH_<NAME>_<PART>, for each identity provider.
_OAUTH_PARTS: dict[str, Callable[[str], object]] = {
    "ISSUER": parsers.issuer,
    "CLIENT_ID": _SECRET,
    "CLIENT_SECRET": _SECRET,
    "DOMAINS": parsers.domains,
}
_OAUTH = re.compile(rf"SVC_OAUTH_([A-Z0-9]+(?:_[A-Z0-9]+)*)_({'|'.join(_OAUTH_PARTS)})")
SECRET_SETTINGS = {"SVC_METRICS_TOKEN", "SVC_STRIPE_SECRET_KEY", "SVC_STRIPE_WEBHOOK_SECRET", "SVC_SMTP_URL"}
