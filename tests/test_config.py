"""svc/config.py: every `SVC_*` checked at start with one clear line, and the posture that follows."""

import os
import re
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.config import SECRET_SETTINGS, SETTINGS, Config, from_environ, is_secret
from svc.errors import StartError
from tests.support.cases import each
from tests.support.pages import README, REFERENCE
from tests.support.server import ROOT

SECRET = "hunter2-hunter2-hunter2"


def refusal(environ: dict[str, str]) -> str:
    """The one line with which these variables stop the start."""
    with pytest.raises(StartError) as caught:
        from_environ(environ)
    line = str(caught.value)
    assert "\n" not in line and line.isprintable()
    return line


def test_empty_environment_gives_the_defaults() -> None:
    config = from_environ({"PATH": "/bin", "OTHER_SVC_PORT": "1"})
    assert (config.host, config.port, config.base_url) == ("127.0.0.1", 8443, "https://127.0.0.1:8443")
    assert (config.tls, config.signup, config.cors_origins, config.data_dir) == ("auto", "open", ("*",), Path("data"))
    assert config.builtin and config.local_posture and config.discovers


def test_an_empty_setting_is_the_default() -> None:
    environ = dict.fromkeys(SETTINGS, "  ")
    assert from_environ(environ) == Config(environ=environ)


def test_settings_and_fields_match() -> None:
    names = [field.name for field in fields(Config)]
    assert {f"SVC_{name.upper()}" for name in names[: names.index("environ")]} == set(SETTINGS)
    assert set(SETTINGS) >= SECRET_SETTINGS


def test_only_secrets_are_hidden_from_repr() -> None:
    hidden = {f"SVC_{field.name.upper()}" for field in fields(Config) if not field.repr} - {"SVC_ENVIRON"}
    assert hidden == SECRET_SETTINGS
    assert is_secret("SVC_OAUTH_LAB_CLIENT_SECRET") and not is_secret("SVC_OAUTH_LAB_CLIENT_ID")


@each("name", ["SVC_PROT", "SVC_", "SVC_host", "SVC_ARGON2_TIME_COST", "SVC_CLOCK", "SVC_ENVIRON", "SVC_LOG_FD"])
def test_an_unknown_setting_is_refused(name: str) -> None:
    line = refusal({name: SECRET})
    assert name in line and SECRET not in line


WRONG = {
    "SVC_HOST": ["256.1.1.1", "no such host", "a b", "http://127.0.0.1", "x" * 300, "no-such-host.invalid"],
    "SVC_PORT": ["-1", "65536", "8443.0", "http", "٣", "1e3", "9" * 5000, "0x50"],
    "SVC_BASE_URL": [
        "http://a.example",
        "a.example",
        "https://",
        "https://a.example/path",
        "https://a.example?x",
        "https://a.example#x",
        "https://u:hunter2-hunter2-hunter2@a.example",
        "https://:hunter2-hunter2-hunter2@a.example",
        "https://a.example:0",
        "https://a.example:65536",
        "https://a.example:x",
        "https://[::1",
        "https://[zz]",
        "https://a b",
        "https://bücher.example",
        "https://a.example\\x",
        "//a.example",
        "https://a.example,https://b.example",
        "https://-a",
        "https:///x",
    ],
    "SVC_TLS": ["on", "AUTO", "none"],
    "SVC_TLS_CERT": ["~nobody-of-that-name/x"],
    "SVC_TLS_KEY": ["~nobody-of-that-name/x", "-----BEGIN PRIVATE KEY-----\nhunter2-hunter2-hunter2"],
    "SVC_TRUSTED_PROXIES": ["localhost", "10.0.0.0/33", "10.0.0.1,", "10.0.0.1 10.0.0.2", "*"],
    "SVC_DATA_DIR": ["~nobody-of-that-name/x", "a\0b", "a\nb"],
    "SVC_NEW_SECRETS": ["1", "0a1b2c3", "0a1b2c3d4", "0A1B2C3D", "../a.key"],
    "SVC_SIGNUP": ["yes", "Open", "0"],
    "SVC_PASSWORDS": ["off", "2"],
    "SVC_LOGINS_PER_MINUTE": ["0", "-1", "100001", "5/minute", "1e3"],
    "SVC_SIGNUPS_PER_HOUR": ["0", "x"],
    "SVC_RESETS_PER_HOUR": ["0", "1.5"],
    "SVC_ACCOUNT_BYTES": ["0", "1048575", "1e9", "1 GiB", "-1", "9999999999999999"],
    "SVC_CONNECTIONS": ["0", "-1", "65536", "1e3", "99999999999999999999", "many"],
    "SVC_CONNECTIONS_PER_ADDRESS": ["0", "1.5", "65536"],
    "SVC_KEEP_CONVERSATIONS_DAYS": ["0", "-1", "36501", "30 days"],
    "SVC_KEEP_RUNS_DAYS": ["0", "1.5"],
    "SVC_KEEP_FILES_DAYS": ["0", "for ever"],
    "SVC_CORS_ORIGINS": [
        "a.example",
        "ftp://a.example",
        "https://a.example/x",
        "https://",
        "https://a.example,",
        "https://*.a.example",
        "null",
    ],
    "SVC_METRICS_TOKEN": ["hunter2", "hunter2-hunter2-hunter2-ä", "hunter2-hunter2-hunter2\x01"],
    "SVC_CATALOG": ["/no/such/file.toml", "/", "x" * 5000, "~nobody-of-that-name/x"],
    "SVC_BACKUP_DIR": ["~nobody-of-that-name/x", "a\0b", "a\nb"],
    "SVC_DISCOVER": ["true", "2", "off"],
    "SVC_BUILTIN": ["false", "10"],
    "SVC_AGENT_FETCH": ["yes"],
    "SVC_PAYMENTS": ["paypal", "Stripe"],
    "SVC_STRIPE_SECRET_KEY": ["hunter2-hunter2-hunter2 x", "hunter2-hunter2-hunter2-ä"],
    "SVC_STRIPE_WEBHOOK_SECRET": ["hunter2-hunter2-hunter2 x"],
    "SVC_STRIPE_API": [
        "ftp://a.example",
        "http://a.example",
        "https://u:hunter2-hunter2-hunter2@a.example",
        "https://a.example:99999",
        "x",
    ],
    "SVC_BYOK_PRIVATE": ["yes", "2"],
    "SVC_SMTP_URL": [
        "mail.example",
        "https://u:hunter2-hunter2-hunter2@mail.example",
        "smtp://u:hunter2-hunter2-hunter2@",
        "smtp://u:hunter2-hunter2-hunter2@mail.example:99999",
        "smtp://u:hunter2-hunter2-hunter2@mail.example:0",
        "smtp://u:hunter2-hunter2-hunter2@mail.example/x",
        "smtp://u:hunter2-hunter2-hunter2@mail.example?starttls=off",
        "smtp://u:hunter2-hunter2-hunter2@mail.example?starttls=on",
        "smtp://u:hunter2-hunter2-hunter2@mail.example?to=a@b",
        "smtp://u:hunter2-hunter2-hunter2@mail.example?from=nobody",
        "smtp://u:hunter2-hunter2-hunter2-%C3%A4@mail.example",
        "smtp://u@mail.example",
        "smtp://[::1",
        "smtp://mail.example?from=a%0d%0ab@c",
    ],
}


@each(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_setting_is_refused_by_its_name(name: str, value: str) -> None:
    line = refusal({name: value})
    assert line.startswith(name)
    assert "hunter2" not in line
    assert len(line) < 300


def test_each_setting_has_a_wrong_value_in_this_test() -> None:
    assert set(SETTINGS) ^ WRONG.keys() == set(), "WRONG has values that each setting refuses"


def test_each_setting_is_documented_with_its_default() -> None:
    table = REFERENCE.partition("| variable |")[2].partition("\n\n")[0]
    shown: dict[str, str] = {}
    for _, names, defaults, *_ in (row.split("|") for row in table.splitlines()[2:]):
        cells = [cell.strip() for cell in defaults.split(", ")]
        shown |= dict(zip(names.strip().split(", "), cells if len(cells) > 1 else cells * 3, strict=False))
    own = {name: text for name, text in shown.items() if "<NAME>" not in name}
    defaults = {f"SVC_{field.name.upper()}": field.default for field in fields(Config)}
    missing = {f"`{name}`{' *' if name in SECRET_SETTINGS else ''}" for name in SETTINGS} ^ own.keys()
    assert missing == set(), "the table of settings of svc/OPERATING.md names each setting, and marks secrets with *"
    for name, text in own.items():
        default = defaults[name.strip("` *")]
        if isinstance(default, bool | int) or (isinstance(default, str) and default):
            assert text == f"`{int(default) if isinstance(default, bool) else default}`", (
                f"{name} is {default} by default"
            )


def test_each_setting_is_read() -> None:
    code = "".join(path.read_text() for path in (ROOT / "svc").rglob("*.py")) + (ROOT / "app.py").read_text()
    unread = {name for name in SETTINGS if not re.search(rf"\.{name[4:].lower()}\b", code)}
    assert unread == set(), "remove these settings, or read their fields"


def test_pages_name_only_settings_that_exist() -> None:
    assert set(re.findall(r"`(SVC_\w+)`", README + REFERENCE)) - SETTINGS.keys() == set()


OAUTH = {
    "SVC_OAUTH_LAB_ISSUER": "https://id.example/",
    "SVC_OAUTH_LAB_CLIENT_ID": "svc",
    "SVC_OAUTH_LAB_CLIENT_SECRET": SECRET,
}


@each(
    ("environ", "named"),
    [
        *((OAUTH | {name: ""}, name) for name in OAUTH),
        *(
            (OAUTH | {"SVC_OAUTH_LAB_ISSUER": url}, "SVC_OAUTH_LAB_ISSUER")
            for url in ("id.example", "http://id.example", "https://a?x")
        ),
        (OAUTH | {"SVC_OAUTH_LAB_CLIENT_SECRET": f"{SECRET} x"}, "SVC_OAUTH_LAB_CLIENT_SECRET"),
        *(
            (OAUTH | {"SVC_OAUTH_LAB_DOMAINS": text}, "SVC_OAUTH_LAB_DOMAINS")
            for text in ("@a.example", "a b", "a.example,", "*.a")
        ),
        ({"SVC_OAUTH_LAB_DOMAINS": "a.example"}, "SVC_OAUTH_LAB_ISSUER"),
        (OAUTH | {"SVC_OAUTH_LAB_SCOPE": "email"}, "SVC_OAUTH_LAB_SCOPE"),
        (OAUTH | {"SVC_OAUTH_LAB_GROUPS_CLAIM": "my groups"}, "SVC_OAUTH_LAB_GROUPS_CLAIM"),
        (OAUTH | {"SVC_OAUTH_LAB_TRUST_EMAIL": "yes"}, "SVC_OAUTH_LAB_TRUST_EMAIL"),
        (OAUTH | {"SVC_OAUTH_LAB_TRUSTED_DOMAINS": "*.example"}, "SVC_OAUTH_LAB_TRUSTED_DOMAINS"),
        ({"SVC_OAUTH_GITHUB_CLIENT_ID": "svc"}, "SVC_OAUTH_GITHUB_CLIENT_SECRET"),
    ],
)
def test_wrong_or_incomplete_identity_provider_is_refused(environ: dict[str, str], named: str) -> None:
    line = refusal(environ)
    assert named in line and "hunter2" not in line


def test_identity_provider_name_is_lower_case_and_github_needs_no_issuer() -> None:
    github = {"SVC_OAUTH_GITHUB_CLIENT_ID": "svc", "SVC_OAUTH_GITHUB_CLIENT_SECRET": SECRET}
    config = from_environ(OAUTH | github)
    assert {provider.name: provider.issuer for provider in config.identity_providers} == {
        "lab": "https://id.example/",
        "github": "https://github.com",
    }
    assert "hunter2" not in repr(config)
    (lab,) = from_environ(OAUTH | {"SVC_OAUTH_LAB_DOMAINS": "Corp.example, b.test"}).identity_providers
    assert lab.domains == ("corp.example", "b.test")


@given(
    st.sampled_from(sorted(SETTINGS)),
    st.text(st.characters(exclude_characters="\0")).filter(lambda text: text.strip() != "~"),
)
def test_any_text_is_a_value_or_one_line(name: str, text: str) -> None:
    if name == "SVC_HOST":
        text = f"{text}."  # no look-up of names made up here leaves this machine
        if "." in text and text.isascii():
            return
    try:
        from_environ({name: text})
    except StartError as error:
        assert name in str(error) and str(error).isprintable()


@each(
    ("environ", "named"),
    [
        ({"SVC_PASSWORDS": "0"}, ["SVC_PASSWORDS=0", "SVC_OAUTH_<NAME>_*"]),
        ({"SVC_TLS": "files"}, ["SVC_TLS_CERT", "SVC_TLS_KEY"]),
        ({"SVC_TLS": "files", "SVC_TLS_CERT": __file__}, ["SVC_TLS_KEY"]),
        ({"SVC_TLS": "files", "SVC_TLS_CERT": __file__, "SVC_TLS_KEY": "/hunter2"}, ["SVC_TLS_KEY"]),
        ({"SVC_TLS": "files", "SVC_TLS_CERT": "/nowhere", "SVC_TLS_KEY": __file__}, ["SVC_TLS_CERT", "/nowhere"]),
        ({"SVC_TLS_CERT": __file__, "SVC_TLS_KEY": __file__}, ["SVC_TLS=files"]),
        ({"SVC_TLS": "proxy"}, ["SVC_TRUSTED_PROXIES"]),
        ({"SVC_PAYMENTS": "stripe"}, ["SVC_STRIPE_SECRET_KEY", "SVC_STRIPE_WEBHOOK_SECRET"]),
        ({"SVC_PAYMENTS": "stripe", "SVC_STRIPE_SECRET_KEY": "hunter2"}, ["SVC_STRIPE_WEBHOOK_SECRET"]),
        ({"SVC_STRIPE_SECRET_KEY": "hunter2"}, ["SVC_PAYMENTS=stripe"]),
    ],
)
def test_conflicting_settings_are_refused(environ: dict[str, str], named: list[str]) -> None:
    line = refusal(environ)
    assert all(name in line for name in named)
    assert "hunter2" not in line


RIGHT: list[tuple[str, str, Any]] = [
    ("SVC_HOST", "0.0.0.0", "0.0.0.0"),
    ("SVC_HOST", "[::1]", "::1"),
    ("SVC_HOST", "localhost", "localhost"),
    ("SVC_PORT", " 0 ", 0),
    ("SVC_PORT", "65535", 65535),
    ("SVC_BASE_URL", "https://Chat.Example.com/", "https://chat.example.com"),
    ("SVC_BASE_URL", "https://a.example:443", "https://a.example"),
    ("SVC_BASE_URL", "https://a.example:8443", "https://a.example:8443"),
    ("SVC_BASE_URL", "https://[2001:DB8::0:1]:1", "https://[2001:db8::1]:1"),
    (
        "SVC_CORS_ORIGINS",
        "https://A.example/, http://localhost:3000,http://b:80",
        ("https://a.example", "http://localhost:3000", "http://b"),
    ),
    ("SVC_CORS_ORIGINS", "*", ("*",)),
    ("SVC_DATA_DIR", "/srv/my data", Path("/srv/my data")),
    ("SVC_DISCOVER", "0", False),
    ("SVC_NEW_SECRETS", "0a1b2c3d", "0a1b2c3d"),
    ("SVC_METRICS_TOKEN", SECRET, SECRET),
    ("SVC_SIGNUP", "closed", "closed"),
    ("SVC_ACCOUNT_BYTES", "1048576", 1_048_576),
]


@each(("name", "text", "value"), RIGHT)
def test_valid_setting_is_parsed_to_its_type(name: str, text: str, value: Any) -> None:
    assert getattr(from_environ({name: text}), name[4:].lower()) == value


def test_repr_hides_secrets() -> None:
    environ = {"SVC_METRICS_TOKEN": SECRET, "SVC_PAYMENTS": "stripe", "OLLAMA_KEY": SECRET}
    environ |= {"SVC_STRIPE_SECRET_KEY": SECRET, "SVC_STRIPE_WEBHOOK_SECRET": SECRET}
    config = from_environ(environ)
    assert config.metrics_token == SECRET
    assert "hunter2" not in repr(config)
    (lab,) = from_environ(OAUTH | {"SVC_OAUTH_LAB_DOMAINS": "Corp.example, b.test"}).identity_providers
    assert lab.domains == ("corp.example", "b.test")


PROXY = {"SVC_TRUSTED_PROXIES": "127.0.0.1"}


@each(
    ("environ", "local"),
    [
        ({}, True),
        ({"SVC_HOST": "127.0.0.2"}, True),
        ({"SVC_HOST": "::1"}, True),
        ({"SVC_HOST": "localhost"}, True),
        ({"SVC_BASE_URL": "https://localhost:8443"}, True),
        ({"SVC_BASE_URL": "https://[::1]:8443"}, True),
        ({"SVC_HOST": "0.0.0.0"}, False),
        ({"SVC_HOST": "::"}, False),
        ({"SVC_HOST": "0.0.0.0", "SVC_BASE_URL": "https://localhost"}, False),
        ({"SVC_HOST": "192.0.2.1"}, False),
        ({"SVC_BASE_URL": "https://chat.example.com"}, False),
        ({"SVC_BASE_URL": "https://localhost.example.com"}, False),
        ({"SVC_BASE_URL": "https://127.0.0.1.example.com"}, False),
        (PROXY, False),
        ({"SVC_TLS": "proxy", **PROXY}, False),
        ({"SVC_TLS": "proxy", "SVC_BASE_URL": "https://localhost", **PROXY}, False),
    ],
)
def test_posture_is_local_only_on_loopback(environ: dict[str, str], local: bool) -> None:
    config = from_environ(environ)
    assert config.local_posture is local
    assert config.discovers is local
    assert config.payment_mode == ("sandbox" if local else "none")


def test_explicit_setting_overrides_the_posture(tmp_path: Path) -> None:
    catalog = tmp_path / "catalog.toml"
    catalog.touch()
    assert not from_environ({"SVC_CATALOG": str(catalog)}).discovers
    assert from_environ({"SVC_CATALOG": str(catalog), "SVC_DISCOVER": "1"}).discovers
    assert from_environ({"SVC_HOST": "0.0.0.0", "SVC_DISCOVER": "1"}).discovers
    assert not from_environ({"SVC_DISCOVER": "0"}).discovers
    assert from_environ({"SVC_PAYMENTS": "none"}).payment_mode == "none"


@each(
    ("host", "base_url"),
    [
        ("127.0.0.1", "https://127.0.0.1:9000"),
        ("::1", "https://[::1]:9000"),
        ("0.0.0.0", "https://localhost:9000"),
        ("::", "https://localhost:9000"),
        ("192.0.2.1", "https://192.0.2.1:9000"),
    ],
)
def test_default_base_url_has_the_bound_port(host: str, base_url: str) -> None:
    config = from_environ({"SVC_HOST": host, "SVC_PORT": "0"}).at_port(9000)
    assert (config.port, config.base_url) == (9000, base_url)


def test_configured_base_url_ignores_the_bound_port() -> None:
    config = from_environ({"SVC_BASE_URL": "https://chat.example.com", "SVC_PORT": "0"}).at_port(9000)
    assert (config.port, config.base_url) == (9000, "https://chat.example.com")


@each(
    ("address", "trusted"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::7", True),
        ("10.2.0.1", False),
        ("127.0.0.1", False),
        ("::1", False),
        ("", False),
        ("unix", False),
        ("10.1.2.3, 8.8.8.8", False),
    ],
)
def test_trusted_proxies_are_matched_by_address(address: str, trusted: bool) -> None:
    config = from_environ({"SVC_TRUSTED_PROXIES": "10.1.0.0/16, 2001:db8::/64"})
    assert config.trusts(address) is trusted
    assert not from_environ({}).trusts(address)


def test_secret_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "mail").write_text("smtps://svc:hunter2@mail.example\r\n")
    environ = {f"{name}_FILE": str(tmp_path / "secret") for name in SECRET_SETTINGS}
    environ |= {"SVC_SMTP_URL_FILE": str(tmp_path / "mail"), "SVC_PAYMENTS": "stripe"}
    environ |= {"SVC_OAUTH_GITHUB_CLIENT_ID": "svc", "SVC_OAUTH_GITHUB_CLIENT_SECRET_FILE": str(tmp_path / "secret")}
    config = from_environ(environ)
    assert [config.metrics_token, config.stripe_secret_key, config.stripe_webhook_secret] == [SECRET] * 3
    assert config.smtp_url and config.smtp_url.password == "hunter2"
    assert config.identity_providers[0].client_secret == SECRET
    assert "hunter2" not in repr(config)
    (lab,) = from_environ(OAUTH | {"SVC_OAUTH_LAB_DOMAINS": "Corp.example, b.test"}).identity_providers
    assert lab.domains == ("corp.example", "b.test")


@each(
    ("setting", "content"),
    [
        ("SVC_METRICS_TOKEN_FILE", "hunter2"),
        ("SVC_STRIPE_SECRET_KEY_FILE", f"{SECRET}\n{SECRET}"),
        ("SVC_SMTP_URL_FILE", "smtp://u:hunter2@mail.example/x"),
        ("SVC_OAUTH_GITHUB_CLIENT_SECRET_FILE", "hunter2 x"),
    ],
)
def test_wrong_value_in_a_file_is_refused_without_showing_it(tmp_path: Path, setting: str, content: str) -> None:
    (tmp_path / "secret").write_text(content)
    line = refusal({setting: str(tmp_path / "secret")})
    assert line.startswith(setting.removesuffix("_FILE")) and "hunter2" not in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@each("closed", ["folder", "file"])
def test_file_that_the_user_may_not_read_is_not_reported_as_missing(closed: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folder is closed to other users
        folder = Path(name)
        file = folder / "catalog.toml"
        file.touch(mode=0o600 if closed == "file" else 0o644)
        folder.chmod(0o755 if closed == "file" else 0o700)
        tls = {"SVC_TLS": "files", "SVC_TLS_CERT": __file__}
        os.setresuid(65534, 65534, 0)
        try:
            catalog, key = (refusal({setting: str(file)}) for setting in ("SVC_CATALOG", "SVC_METRICS_TOKEN_FILE"))
            tls_key = refusal(tls | {"SVC_TLS_KEY": str(file)})
        finally:
            os.setresuid(0, 0, 0)
        assert "may not read" in catalog and str(file) in catalog
        assert "permission denied" in key and "may not read" in tls_key and str(file) not in key + tls_key


@each("name", ["SVC_PORT_FILE", "SVC_TLS_KEY_FILE", "SVC_OAUTH_LAB_CLIENT_ID_FILE", "SVC_FILE", "SVC__FILE"])
def test_only_secrets_are_read_from_files(name: str) -> None:
    assert f"{name} is not a setting" in refusal({name: __file__})


def test_unknown_setting_names_the_likely_cause() -> None:
    assert refusal({"SVC_KEY": "svc-v1-secret"}) == (
        "SVC_KEY is not a setting of this service; svc/OPERATING.md lists them. If it is for another program in this "
        "shell, run 'unset SVC_KEY' first"
    )
