"""The state of the service and of its machine, as far as it can be checked at once and without other services.

`svc doctor` prints it, `GET /admin/status` shows it.
"""

import shutil
import stat
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from svc.builtin import provider as builtin
from svc.certificates import check_certificate, files_in
from svc.config import Config
from svc.errors import StartError
from svc.secrets import backup_made_at
from svc.server.serve import tls_context

_DAY_SECONDS = 86_400
_GIB = 1024**3
_EXPIRES_SOON_DAYS = 14
_OLD_BACKUP_DAYS = 7
SKEW_SECONDS = 60
NTP = "Set the clock by NTP: sessions, certificates and payments rely on it"

Grade = Literal["ok", "look", "wrong"]  # look: it works, but check it
Result = tuple[Grade, str]  # the grade and the text of a finding


class Finding(NamedTuple):
    """`about` is the subject. `code` and `values` are the text for other languages; without a code there is none."""

    grade: Grade
    about: str
    text: str
    code: str = ""
    values: tuple[str | float, ...] = ()


def findings(config: Config) -> list[Finding]:
    """Return what `svc doctor` finds without a request to another service. It reads files."""
    try:
        found = certificate(config)
    except (StartError, OSError) as error:
        found = Finding("wrong", "certificate", str(error))
    return [found, *files(config), *options(config)]


def existing_part(path: Path) -> Path:
    """Return an absolute path, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def certificate(config: Config) -> Finding:
    found = partial(Finding, about="certificate")
    if config.tls == "proxy":
        text = "the proxy has it; the proxy must send X-Forwarded-Proto: https"
        return found("ok", text=text, code="certificate_of_proxy")
    if config.tls == "files":
        tls_context(config)
    elif not files_in(config.data_dir).cert.exists():
        return found("ok", text="there is none yet; the first start makes one")
    host = urlsplit(config.base_url).hostname or ""
    is_renewed = config.tls == "auto"
    todo = "The server renews it" if is_renewed else "Replace the file and send SIGHUP"
    try:
        days = (check_certificate(config, host) - time.time()) / _DAY_SECONDS
    except StartError as error:
        return found("wrong", text=f"{error}. {todo}")
    if days < _EXPIRES_SOON_DAYS:
        code = "certificate_renewed" if is_renewed else "certificate_to_replace"
        return found("look", text=f"it expires in {days:.0f} days. {todo}", code=code, values=(round(days),))
    text = f"it is for {host}, and valid for {days:.0f} days"
    return found("ok", text=text, code="certificate_valid", values=(host, round(days)))


def files(config: Config) -> Iterator[Finding]:
    """Check disk, backup, clock and the certificate's key by what the file system knows."""
    free_gib = shutil.disk_usage(existing_part(config.data_dir.absolute())).free / _GIB
    grade: Grade = "wrong" if free_gib < 1 else "look" if free_gib < 5 else "ok"
    text = f"{free_gib:.1f} GiB are free for the data folder"
    yield Finding(grade, "disk", text, "disk_free", (round(free_gib, 1),))
    if config.tls_key and stat.S_IMODE(config.tls_key.stat().st_mode) & 0o007:
        text = f"other users can read the key. Run chmod o= {config.tls_key}"
        yield Finding("look", "certificate", text, "key_readable", (str(config.tls_key),))
    written = [path.stat().st_mtime for path in config.data_dir.glob("service.db*")]
    if not written:
        return
    days = (time.time() - backup_made_at(config.data_dir)) / _DAY_SECONDS
    if days > _OLD_BACKUP_DAYS:
        text = f"there is none of the last {_OLD_BACKUP_DAYS} days. Run 'svc backup FOLDER' every night"
        yield Finding("look", "backup", text, "backup_old", (_OLD_BACKUP_DAYS,))
    else:
        text = f"the last one was made {days:.1f} days ago"
        yield Finding("ok", "backup", text, "backup_made", (round(days, 1),))
    if max(written) - time.time() > SKEW_SECONDS:
        text = f"it was set back: the database was written in its future. {NTP}"
        yield Finding("wrong", "clock", text, "clock_set_back")


def options(config: Config) -> Iterator[Finding]:
    if config.builtin and "voice" not in builtin.offered():
        text = "builtin/voice needs eSpeak NG. Install espeak-ng, or the extra 'voice'"
        yield Finding("look", "speech", text, "speech_missing")
    if config.builtin and "whisper-tiny" not in builtin.offered():
        text = "builtin/whisper-tiny is not offered; the extra 'hearing' installs it"
        yield Finding("ok", "transcription", text, "transcription_missing")
    if config.smtp_url is None:
        yield Finding("ok", "mail", "there is no mail server; 'svc user reset-link' prints links", "mail_missing")
    if not config.local_posture and config.metrics_token is None:
        yield Finding("look", "metrics", "they are off. Set SVC_METRICS_TOKEN", "metrics_off")
    if config.payment_mode == "none":
        yield Finding("ok", "payments", "none are accepted", "payments_off")
    elif config.payment_mode == "sandbox":
        text = "every user can add test money (SVC_PAYMENTS=sandbox)"
        yield Finding("ok" if config.local_posture else "look", "payments", text, "payments_sandbox")
    elif "_test_" in (config.stripe_secret_key or ""):
        yield Finding("look", "payments", "the key is for test money", "payments_test_key")
    if config.stripe_webhook_secret and not config.stripe_webhook_secret.startswith("whsec_"):
        text = "SVC_STRIPE_WEBHOOK_SECRET does not begin with whsec_"
        yield Finding("look", "payments", text, "payments_odd_secret")
