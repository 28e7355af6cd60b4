"""The `SVC_*` settings in one frozen object, validated at start."""

import ipaddress
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints
from urllib.parse import urlsplit

from svc import parsers
from svc.errors import StartError
from svc.parsers import MailServer as MailServer
from svc.parsers import Network

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
GITHUB = "https://github.com"
SECRET_FILE_BYTES = 16 * 1024

_PER_ADDRESS = parsers.integer(1, 100_000)
_DAYS = parsers.integer(1, 36_500)
_SECRET = parsers.matching("[!-~]+", "must be printable ASCII without spaces")
_TOKEN = parsers.matching("[ -~]{16,}", "must be at least 16 printable ASCII characters")
_INSTALLATION = parsers.matching("[0-9a-f]{8}", "must be the 8 hexadecimal digits that the refused start prints")


@dataclass(frozen=True)
class IdentityProvider:
    """The settings `SVC_OAUTH_<NAME>_*`. `issuer` is exactly the provider's own identifier (for GitHub its website)."""

    name: str
    issuer: Annotated[str, parsers.issuer]
    client_id: Annotated[str, _SECRET]
    client_secret: Annotated[str, _SECRET] = field(repr=False)
    # Verified addresses there get an account although sign-up is closed.
    domains: Annotated[tuple[str, ...], parsers.domains] = ()
    groups_claim: Annotated[str | None, parsers.matching("[!-~]+", "must be the name of a claim")] = None
    # Addresses that count as verified if the provider does not send `email_verified`: all, or those of the domains.
    trust_email: Annotated[bool, parsers.switch] = False
    trusted_domains: Annotated[tuple[str, ...], parsers.domains] = ()


@dataclass(frozen=True)
class Config:
    """The configuration. Annotated fields are settings of the environment; tests set the others."""

    host: Annotated[str, parsers.host] = "127.0.0.1"
    port: Annotated[int, parsers.integer(0, 65535, "must be an integer from 0 to 65535 (0 picks a free port)")] = 8443
    base_url: Annotated[str, parsers.base_url] = ""  # empty: derived from host and port
    tls: Annotated[str, parsers.one_of("auto", "files", "proxy")] = "auto"
    tls_cert: Annotated[Path | None, parsers.path] = None
    tls_key: Annotated[Path | None, parsers.path] = None
    trusted_proxies: Annotated[tuple[Network, ...], parsers.networks] = ()
    data_dir: Annotated[Path, parsers.path] = Path("data")
    new_secrets: Annotated[str | None, _INSTALLATION] = None  # the id of the installation whose master key is lost
    signup: Annotated[str, parsers.one_of("open", "closed")] = "open"
    passwords: Annotated[bool, parsers.switch] = True
    logins_per_minute: Annotated[int, _PER_ADDRESS] = 5  # this limit and the next two are for one client address
    signups_per_hour: Annotated[int, _PER_ADDRESS] = 10
    resets_per_hour: Annotated[int, _PER_ADDRESS] = 3
    account_bytes: Annotated[int, parsers.integer(1024**2, 10**15, "must be an integer of 1048576 or more")] = 1024**3
    keep_conversations_days: Annotated[int | None, _DAYS] = None  # this and the next two: None keeps everything
    keep_runs_days: Annotated[int | None, _DAYS] = None
    keep_files_days: Annotated[int | None, _DAYS] = None
    cors_origins: Annotated[tuple[str, ...], parsers.origins] = ("*",)
    connections: Annotated[int, parsers.integer(1, 65535)] = 4096
    connections_per_address: Annotated[int, parsers.integer(1, 65535)] = 1024
    metrics_token: Annotated[str | None, _TOKEN] = field(default=None, repr=False)
    catalog: Annotated[Path | None, parsers.path] = None
    backup_dir: Annotated[Path | None, parsers.path] = None
    discover: Annotated[bool | None, parsers.switch] = None  # None: only in local posture
    builtin: Annotated[bool, parsers.switch] = True
    agent_fetch: Annotated[bool, parsers.switch] = False
    byok_private: Annotated[bool | None, parsers.switch] = None  # None: only in local posture
    # None: sandbox in local posture, else none
    payments: Annotated[str | None, parsers.one_of("stripe", "sandbox", "none")] = None
    stripe_secret_key: Annotated[str | None, _SECRET] = field(default=None, repr=False)
    stripe_webhook_secret: Annotated[str | None, _SECRET] = field(default=None, repr=False)
    stripe_api: Annotated[str, parsers.api] = "https://api.stripe.com"
    smtp_url: Annotated[MailServer | None, parsers.mail_server] = field(default=None, repr=False)

    # The environment, with secrets in place of their files: `api_key_env` of the catalog names a variable.
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    identity_providers: tuple[IdentityProvider, ...] = ()  # from `SVC_OAUTH_*`
    clock: Callable[[], float] = time.time  # seconds
    monotonic: Callable[[], float] = time.monotonic
    list_seconds: float = 3.0  # the time that a user's provider has to list its models
    list_tools_seconds: float = 10.0  # and a user's tool server its tools
    log_fd: int = 2
    argon2_memory_kib: int = 19456
    argon2_time_cost: int = 2
    local_helper: tuple[str, ...] = ()  # the command that runs a GGUF file; (): svc/inference/local/helper.py
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
            parsers.is_loopback(self.host)
            and self.tls != "proxy"
            and not self.trusted_proxies
            and parsers.is_loopback(base_host)
        )

    @property
    def discovers(self) -> bool:
        return self.discover if self.discover is not None else self.local_posture and self.catalog is None

    @property
    def private_addresses(self) -> bool:
        """Whether users' providers and `fetch_url` may use private and loopback addresses."""
        return self.local_posture if self.byok_private is None else self.byok_private

    @property
    def payment_mode(self) -> str:
        return self.payments or ("sandbox" if self.local_posture else "none")

    @property
    def files(self) -> dict[str, Path]:
        """The files that settings name, by the names of the settings."""
        paths = {"SVC_TLS_CERT": self.tls_cert, "SVC_TLS_KEY": self.tls_key, "SVC_CATALOG": self.catalog}
        return {name: path for name, path in paths.items() if path}

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
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self.trusted_proxies)


def from_environ(environ: Mapping[str, str]) -> Config:
    """Return the configuration of the `SVC_*` variables. Raises StartError for an invalid or unknown one."""
    values: defaultdict[str, dict[str, Any]] = defaultdict(dict)  # by the name of an identity provider, or ""
    settings = with_secret_files(environ)
    for name in sorted(name for name in settings if name.startswith("SVC_")):
        of_provider = _OAUTH.fullmatch(name)
        parse = _OAUTH_PARTS[of_provider[2]] if of_provider else SETTINGS.get(name)
        if parse is None:
            hint = f"If it is for another program in this shell, run 'unset {name}' first"
            raise StartError(f"{name} is not a setting of this service; svc/OPERATING.md lists them. {hint}")
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
        provider, part = of_provider.groups() if of_provider else ("", name.removeprefix("SVC_"))
        values[provider.lower()][part.lower()] = value
    config = Config(**values.pop("", {}), identity_providers=_identity_providers(values), environ=settings)
    _check_together(config)
    return config


def is_secret(name: str) -> bool:
    """Whether the setting `name` is a secret. No message shows it, and `<NAME>_FILE` may name its file."""
    return name in SECRET_SETTINGS or bool(re.fullmatch(r"SVC_OAUTH_[A-Z0-9_]+_CLIENT_SECRET", name))


def with_secret_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with `<NAME>` in place of each `<NAME>_FILE` of a secret; empty values are ignored.

    Raises StartError, without the path: an operator may have put the secret there by mistake.
    """
    found = dict(environ)
    for name_of_file in sorted(environ):
        name = name_of_file.removesuffix("_FILE")
        if name == name_of_file or not is_secret(name) or not (path := found.pop(name_of_file).strip()):
            continue
        if environ.get(name, "").strip():
            raise StartError(f"{name} and {name_of_file} are both set: keep one of them")
        try:
            found[name] = _secret_in_file(Path(path))
        except UnicodeDecodeError:
            raise StartError(f"{name_of_file}: the file is no UTF-8 text") from None
        except OSError as error:
            raise StartError(f"{name_of_file}: the file cannot be read: {str(error.strerror).lower()}") from None
        except ValueError as error:
            raise StartError(f"{name_of_file}: {error}") from None
    return found


def _secret_in_file(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a named pipe could block without end
        raise ValueError("it must be a regular file")
    with path.open("rb") as file:
        content = file.read(SECRET_FILE_BYTES + 1)
    if len(content) > SECRET_FILE_BYTES:
        raise ValueError(f"the file has more than {SECRET_FILE_BYTES} bytes, too many for a secret of one line")
    text = content.decode().strip()
    if not text:
        raise ValueError("the file is empty")
    return text


def _identity_providers(parts: Mapping[str, Mapping[str, Any]]) -> tuple[IdentityProvider, ...]:
    found = []
    for name, given in parts.items():
        values = {"issuer": GITHUB, **given} if name == "github" else given
        needed = ("issuer", "client_id", "client_secret")
        missing = [f"SVC_OAUTH_{name}_{part}".upper() for part in needed if part not in values]
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
        raise StartError(
            "SVC_PASSWORDS=0 needs an identity provider (SVC_OAUTH_<NAME>_*): without one nobody can sign in"
        )
    stripe_secrets = [config.stripe_secret_key, config.stripe_webhook_secret]
    if config.payments == "stripe" and not all(stripe_secrets):
        raise StartError("SVC_PAYMENTS=stripe needs SVC_STRIPE_SECRET_KEY and SVC_STRIPE_WEBHOOK_SECRET")
    if config.payments is None and any(stripe_secrets):
        raise StartError("SVC_STRIPE_SECRET_KEY and SVC_STRIPE_WEBHOOK_SECRET are only for SVC_PAYMENTS=stripe")
    for name, path in config.files.items():
        shown = "the file" if name == "SVC_TLS_KEY" else str(path)[:100]  # it may be set to the key itself
        if not _may_read(path):
            raise StartError(
                f"{name}: the service may not read {shown}; let its user read the file and open its folders"
            )
        if not os.path.isfile(path):  # noqa: PTH113 - False, too, for a long name
            raise StartError(f"{name} must name a file{'' if name == 'SVC_TLS_KEY' else f', and {shown} is none'}")


def _may_read(path: Path) -> bool:
    """Return whether this user may read the file at `path`, or there is none."""
    try:
        path.stat()
    except PermissionError:  # a folder above it is closed
        return False
    except (OSError, ValueError):
        return True
    return os.access(path, os.R_OK)


def _url_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - bound everywhere: this machine's own name for links
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _parsers(of: type) -> dict[str, Callable[[str], object]]:
    """Return the parser of each field that is annotated with one, by its name in upper case."""
    hints = get_type_hints(of, include_extras=True)
    return {name.upper(): hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


SETTINGS = {f"SVC_{name}": parse for name, parse in _parsers(Config).items()}
SECRET_SETTINGS = {f"SVC_{one.name.upper()}" for one in fields(Config) if not one.repr} & SETTINGS.keys()
_OAUTH_PARTS = _parsers(IdentityProvider)  # SVC_OAUTH_<NAME>_<PART>, for each identity provider
_OAUTH = re.compile(rf"SVC_OAUTH_([A-Z0-9]+(?:_[A-Z0-9]+)*)_({'|'.join(_OAUTH_PARTS)})")
