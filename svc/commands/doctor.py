"""`svc doctor`: check the settings, this machine, and every configured service. Nothing is changed.

settings of the server, or of this command -> all checks at once, each with a deadline -> a line for each finding

A check returns (grade, text). An error that a start would raise is a finding of grade `wrong`.
Texts of other servers and secrets are not printed: only status codes, and names from the settings.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import smtplib
import sqlite3
import ssl
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from svc.admin import catalog_notes
from svc.admin.health import NTP, SKEW_SECONDS, Finding, Result, existing_part, findings
from svc.auth import accounts
from svc.auth.mail import Mail
from svc.auth.oauth import SignInProvider
from svc.billing.stripe import Stripe
from svc.builtin import sandbox
from svc.builtin.processes import ProcessPool
from svc.commands import tools
from svc.commands.backups import room_bytes
from svc.commands.check import schema_findings
from svc.commands.database import command, printable, reading, served_settings
from svc.config import SETTINGS, Config, MailServer
from svc.errors import ApiError, StartError, UpstreamFault
from svc.inference import sealed_keys, upstream, web_search
from svc.inference.catalog import Model, Provider
from svc.inference.catalog_file import on_offer
from svc.inference.effort_needs import ADVICE
from svc.inference.local.files import scan
from svc.inference.local.models import INSTALL, is_installed
from svc.inference.server_formats import probe
from svc.log import Log
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError
from svc.outbound.resolver import Resolver
from svc.schema import start_errors
from svc.secrets import DATABASE, MASTER, fits, fitting_master
from svc.server import status
from svc.server.serve import bind
from svc.server.state import identity_providers, payments, read_catalog

DEADLINE_SECONDS = 15.0
_FORMATS_SECONDS = 5.0
_CHECKED_BYTES = 1024**3  # of a database file: it takes some seconds to read


def line_of(finding: Finding) -> str:
    """Return one line for a terminal, whatever the text contains."""
    return printable(f"{finding.grade:6}{finding.about}: {finding.text}")


@command("doctor", "check the settings, this machine and every configured service; exit status 1 if something is wrong")
def _doctor(config: Config, options: argparse.Namespace) -> int:
    found, used = _settings(config)
    found += asyncio.run(examine(used))
    for finding in found:
        print(line_of(finding))
    faults = sum(finding.grade == "wrong" for finding in found)
    print(f"{faults} of {len(found)} are wrong" if faults else f"nothing of {len(found)} is wrong")
    return 1 if faults else 0


def _settings(here: Config) -> tuple[list[Finding], Config]:
    """Return the settings of the server that runs on this data folder, else `here`, those of this command."""
    try:
        used = served_settings(here)
    except (OSError, ValueError, StartError) as error:
        text = f"those of this command are examined, the server's cannot be read: {error}"
        return [Finding("wrong" if isinstance(error, StartError) else "look", "settings", text)], here
    if used is None:
        return [], here
    found = [Finding("ok", "settings", "those of the running server are examined")]
    mine: dict[str, str] = status.settings(here)["environ"]
    names = sorted(mine.keys() & SETTINGS.keys() - {"SVC_DATA_DIR"})
    if differ := [name for name in names if mine[name] != used.environ.get(name)]:
        text = f"{', '.join(differ)} of this command differ from the running server's"
        found.append(Finding("look", "settings", text))
    return found, used


async def examine(config: Config) -> list[Finding]:
    async with contextlib.AsyncExitStack() as stack:
        resolver = await stack.enter_async_context(contextlib.aclosing(Resolver()))
        outbound = await stack.enter_async_context(contextlib.aclosing(_Dated(resolve=config.resolve or resolver)))
        checks: list[tuple[str, Awaitable[Result]]] = [
            ("data folder", asyncio.to_thread(_folder, config.data_dir.absolute())),
            ("database", asyncio.to_thread(_database, config)),
            ("port", asyncio.to_thread(_port, config)),
            ("run_python", _python()),
        ]
        if config.backup_dir is not None:
            place = asyncio.to_thread(_backup_folder, config.backup_dir.absolute(), config.data_dir.absolute())
            checks.append(("backup folder", place))
        for name, provider in identity_providers(config, outbound).items():
            checks.append((f"identity provider {name}", _identity_provider(config, name, provider)))
        if config.smtp_url is not None:
            checks.append(("mail", _mail(config, config.smtp_url)))
        if stripe := payments(config, outbound, b"").stripe:
            checks.append(("payments", _stripe(config, stripe)))
        found, notes = list[Finding](), list[Finding]()
        try:
            catalog = read_catalog(config, outbound)
            checks += _model_servers(config, outbound)
            if catalog.search is not None:
                checks.append((f"search engine {catalog.search.name}", _search(outbound, catalog.search)))
            for server in catalog.tool_servers.values():
                checks.append((f"tool server {server.name}", tools.examined(outbound, server, DEADLINE_SECONDS)))
            notes += await asyncio.to_thread(_local_models, config, catalog.local.folder_in(config.data_dir))
            notes += catalog_notes.notes(catalog, _groups_in_use(config))
            notes += [Finding("look", f"model {id}", ADVICE) for id in await asyncio.to_thread(_refusing_tools, config)]
        except StartError as error:
            found.append(Finding("wrong", "catalog", str(error)))
        found += await asyncio.gather(*(_run(about, check) for about, check in checks))
    return [*found, *notes, *findings(config), _clock(outbound.ahead_seconds)]


async def _run(about: str, check: Awaitable[Result]) -> Finding:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            grade, text = await check
    except TimeoutError:
        grade, text = "wrong", f"no answer within {DEADLINE_SECONDS:g} seconds"
    except (StartError, ApiError, OSError) as error:
        cause = f" {error.__cause__}" if isinstance(error.__cause__, OutboundError) else ""
        advice = " If its CA is private, set SSL_CERT_FILE." if "certificate was refused" in cause else ""
        grade, text = "wrong", f"{error}{cause}{advice}"
    return Finding(grade, about, text)


class _Dated(Outbound):
    """A client that notes how many seconds our clock is ahead of the `Date` of each answer."""

    def __init__(self, resolve: Callable[[str, int, str], Awaitable[Iterable[str]]]) -> None:
        super().__init__(resolve=resolve)
        self.ahead_seconds: list[float] = []

    async def ask(self, *arguments: Any, **options: Any) -> Reply:
        reply = await super().ask(*arguments, **options)
        with contextlib.suppress(ValueError):
            date = parsedate_to_datetime(reply.header(b"date"))
            self.ahead_seconds.append(time.time() - date.timestamp())
        return reply


# --- this machine


def _folder(path: Path) -> Result:
    parent = existing_part(path)
    if parent != path:
        if not os.access(parent, os.W_OK | os.X_OK):
            return "wrong", f"{path} does not exist, and this user cannot make it in {parent}"
        return "ok", f"{path} does not exist yet; the first start makes it"
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return "wrong", f"this user cannot write to {path}. Run as the user of the service"
    owner = path.stat().st_uid
    readable: Path | None = None
    for file in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a running server has deleted it
            its = file.lstat()
            if its.st_uid != owner and file.name != "lost+found":
                return "wrong", f"{file} belongs to user {its.st_uid}. Run chown -R {owner} {path}"
            if its.st_mode & 0o077 and its.st_uid == owner and not stat.S_ISLNK(its.st_mode):
                readable = readable or file
    if readable:
        return "look", f"other users can read {readable} until the next start. Run chmod -R go= {path}"
    return "ok", f"only user {owner} can read {path}"


def _backup_folder(path: Path, data_dir: Path) -> Result:
    if not path.is_dir():
        return "wrong", f"{path} (SVC_BACKUP_DIR) is no folder. Create it, and give it to the user of the service"
    if not os.access(path, os.W_OK | os.X_OK):
        return "wrong", f"this user cannot write to {path} (SVC_BACKUP_DIR). Give it to the user of the service"
    database, free = data_dir / DATABASE, shutil.disk_usage(path).free
    needed = room_bytes(database.stat().st_size if database.exists() else 0)
    if free < needed:
        return "wrong", f"a backup needs {needed >> 20:,} MiB in {path}, where {free >> 20:,} MiB are free"
    if path.resolve().is_relative_to(data_dir.resolve()):
        return "look", f"{path} is in the data folder, and would be lost with it. Set SVC_BACKUP_DIR to another folder"
    return "ok", f"{free >> 20:,} MiB are free in {path}; a backup needs {needed >> 20:,} MiB"


def _database(config: Config) -> Result:
    path, key = config.data_dir / DATABASE, config.data_dir / MASTER
    if not path.exists():
        return "ok", "there is none yet; the first start makes it"
    with start_errors(path), reading(config) as conn:
        if damage := _damage(conn, path):
            return "wrong", f"{damage}. 'svc check' shows all; restore a backup"
        master = key.read_bytes() if key.exists() else b""
        if fits(conn, master):
            return "ok", f"{path.stat().st_size:,} bytes; 'svc check' verifies all of it"
        if fitting_master(conn, config.data_dir):
            return "look", f"{key} is being replaced. If no 'svc rotate-secrets' runs, the next start completes that"
        fault = "is not the key of this database" if master else "is missing"
        if not (sealed := sealed_keys.count(conn)):
            return "look", f"{key} {fault}, but no provider key needs it. The next start makes every session end"
        return "wrong", f"{key} {fault}; {sealed} provider keys need it. Restore it from a backup"


def _damage(conn: sqlite3.Connection, path: Path) -> str | None:
    """Return the first fault of the schema or, unless the file is large, of the pages."""
    if (found := next(schema_findings(conn), None)) is not None:
        return found
    if path.stat().st_size > _CHECKED_BYTES:
        return None
    (answer,) = conn.execute("PRAGMA quick_check(1)").fetchone()
    return None if answer == "ok" else str(answer)


def _port(config: Config) -> Result:
    with contextlib.suppress(OSError, ValueError):  # a server that does not answer holds the port all the same
        answer = status.ask(config.data_dir)
        if answer is not None:
            process = f"process {answer['pid']} (svc {answer['version']})"
            return "ok", f"{process} serves {answer['base_url']} from this folder"
    bind(config.host, config.port).close()
    return "ok", f"{config.host} port {config.port} is free"


def _clock(ahead_seconds: list[float]) -> Finding:
    if not ahead_seconds:
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        return Finding("ok", "clock", f"it is {now} UTC; no other service has answered with a date")
    seconds = min(ahead_seconds, key=abs)
    if abs(seconds) > SKEW_SECONDS:
        direction = "ahead" if seconds > 0 else "behind"
        return Finding("wrong", "clock", f"it is {abs(seconds):.0f} seconds {direction}. {NTP}")
    return Finding("ok", "clock", f"within {max(abs(seconds), 1):.0f} seconds of the other services")


# --- other services


def _model_servers(config: Config, outbound: Outbound) -> Iterator[tuple[str, Awaitable[Result]]]:
    """Return a check for each provider. Raises StartError if there are no models."""
    offer = on_offer(config)
    models, listed, local = offer.models, offer.listed, offer.local
    if not models and not listed and not any(scan(local.folder_in(config.data_dir), {}).values()):
        raise StartError("there are no models. Set SVC_CATALOG, or SVC_BUILTIN=1")
    named: dict[Provider, list[Model]] = {provider: [] for provider in listed}
    for model in models:
        if model.provider is not None:
            named.setdefault(model.provider, []).append(model)
    return (
        (
            f"provider {provider.name}{f' at {server.base_url}' if provider.servers else ''}",
            _provider(outbound, server, own),
        )
        for provider, own in named.items()
        for server in provider.servers or (provider,)
    )


def _local_models(config: Config, folder: Path) -> list[Finding]:
    """Return what is wrong with the GGUF files, as far as the running server knows it."""
    found: list[Finding] = []
    if not is_installed(config) and any(scan(folder, {}).values()):
        found.append(Finding("look", "local models", f"the files in {folder} are not used. To use them, {INSTALL}"))
    with contextlib.suppress(OSError, ValueError):  # `_port` reports a server that does not answer
        models = (status.ask(config.data_dir) or {}).get("local_models", ())
        failed = (one for one in models if one["state"] == "failed")
        found += [Finding("wrong", f"model {one['id']}", " | ".join(one["error"].splitlines())) for one in failed]
    return found


def _refusing_tools(config: Config) -> list[str]:
    """Return the models whose server takes tools only without reasoning, as the running server has learned."""
    with contextlib.suppress(OSError, ValueError):  # `_port` reports a server that does not answer
        answer = status.ask(config.data_dir) or {}
        return list(answer.get("tools_without_reasoning", ()))  # a server of another version has none
    return []


def _groups_in_use(config: Config) -> dict[str, int]:
    with contextlib.suppress(StartError, sqlite3.Error, OSError), reading(config) as conn:  # `_database` reports them
        return accounts.groups_in_use(conn)
    return {}


async def _provider(outbound: Outbound, provider: Provider, models: list[Model]) -> Result:
    """Compare a provider's list and formats with its `models` in the catalog; without models, any list is right."""
    names = [model.name for model in models]
    try:
        offered = set(await upstream.models(outbound, provider))
    except UpstreamFault as fault:
        if not provider.configured:
            return "ok", "not on this machine (tried because there is no catalog)"
        if fault.status in (404, 405):
            return "look", "it answers, but has no list of models. If chat fails, check base_url"
        if fault.status in (401, 403):
            return "wrong", f"the API key is refused or missing (status {fault.status})"
        cause = str(fault).rstrip(".")
        reason = f"it answers with status {fault.status}" if fault.status else f"it cannot be reached: {cause}"
        if fault.kind == "invalid":
            reason = "its answer is not that of a model server"
        return "wrong", f"{reason}. Check that it runs at {provider.base_url}"
    if provider.configured and not offered:
        return "wrong", "it answers, but has no model. Load one there"
    missing = [name for name in names if name not in offered and f"{name}:latest" not in offered]
    if missing:  # some servers list only some of their models
        return "look", f"it does not list {', '.join(missing[:5])}, which the catalog names"
    answers = await probe.formats(outbound, provider, _FORMATS_SECONDS)
    for api in dict.fromkeys(model.api for model in models or [provider.model("")] if model.kind == "chat"):
        if answers[api] is False:
            return "wrong", f"it does not answer the format {api}, which api names. It answers {_told(answers)}"
    return "ok", f"it answers {_told(answers)} and has {f'all {len(names)}' if names else len(offered)} models"


def _told(answers: dict[str, bool | None]) -> str:
    """Return the formats that a server answers, or certainly does not."""
    known = [api for api, answered in answers.items() if answered]
    untold = [f"perhaps {api}" for api, answered in answers.items() if answered is None]
    return ", ".join([*known, *untold]) or "no format"


async def _search(outbound: Outbound, model: Model) -> Result:
    """Search once: the engines have no other request that checks the key."""
    assert model.provider is not None
    try:
        results = await web_search.found(outbound, model, "weather")
    except UpstreamFault as fault:
        if fault.status in (401, 403):
            cause = (
                "its settings allow JSON, and its limiter this machine"
                if model.name == "searxng"
                else "the key is right"
            )
            return "wrong", f"it refuses the request (status {fault.status}). Check that {cause}"
        if web_search.is_out_of_quota(fault):
            return "look", f"its quota is used up (status {fault.status})"
        reason = f"it answers with status {fault.status}" if fault.status else fault.kind
        return "wrong", f"a search fails: {reason}. Check {model.provider.base_url}"
    return "ok" if results else "look", f"it finds {len(results)} results"


async def _python() -> Result:
    if sandbox.binary() is None:
        return "ok", "it is not available. The extra 'python' installs it"

    async def nothing(question: bytes) -> bytes:
        return b"{}"

    pool = ProcessPool("svc.builtin.sandbox")
    try:
        found = await pool.converse(sandbox.order("6 * 7", {}), nothing, account_id="")
    except UpstreamFault as fault:
        return "wrong", f"its process fails: {fault}"
    finally:
        await pool.close()
    return ("ok", "it computes") if b'"value": 42' in found else ("wrong", "it fails to compute 6 * 7")


async def _mail(config: Config, server: MailServer) -> Result:
    place = f"{server.host} port {server.port}"
    error = await Mail(server, config.base_url, Log()).check()
    if error is None:
        return "ok", f"{place} accepts the connection{' and the password' if server.user else ''}"
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "wrong", f"{place} refuses user and password (code {error.smtp_code})"
    reason = f"TLS fails: {error.reason}" if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
    return "wrong", f"{place}: {reason or type(error).__name__}. Check SVC_SMTP_URL"


async def _stripe(config: Config, stripe: Stripe) -> Result:
    code = await stripe.check()
    if code == 200:
        return "ok", f"Stripe accepts the key; it needs a webhook to {config.base_url}/billing/webhook"
    reason = {401: "it refuses SVC_STRIPE_SECRET_KEY", 403: "SVC_STRIPE_SECRET_KEY may not use Checkout Sessions"}
    return "wrong", f"Stripe answers with status {code}: {reason.get(code, 'it fails')}"


async def _identity_provider(config: Config, name: str, provider: SignInProvider) -> Result:
    redirect_uri = f"{config.base_url}/auth/oauth/{name}/callback"
    await provider.check(redirect_uri)
    claims = (await provider.metadata()).get("claims_supported")
    [settings] = [one for one in config.identity_providers if one.name == name]
    trusted = settings.trust_email or settings.trusted_domains
    if isinstance(claims, list) and "email_verified" not in claims and not trusted:
        return "look", (
            "it does not list the claim email_verified. Without it a new identity joins no existing account (code "
            f"email_not_verified). If it checks addresses itself, set SVC_OAUTH_{name.upper()}_TRUSTED_DOMAINS"
        )
    return "ok", f"it accepts the client; its redirect address is {redirect_uri}"
