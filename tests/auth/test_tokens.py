"""svc/auth/tokens.py: which sessions and keys are valid."""

import base64
import hashlib
import hmac
import json
import string
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from svc.auth import tokens
from svc.auth.tokens import SESSION_SECONDS, issue_session, key_hash, new_key_token, read_session
from svc.errors import ApiError
from svc.schema import SCHEMA, connect
from tests.support.cases import each
from tests.support.databases import prepare
from tests.support.server import ROOT

SECRET = bytes(range(32))
NOW = 1_790_000_000
BASE64URL = string.ascii_letters + string.digits + "-_"
TOKEN = issue_session(SECRET, "user_a", NOW)


def encoded(part: Any) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(header: Any, claims: Any, secret: bytes = SECRET, digest: str = "sha256") -> str:
    """Return a correctly signed JWT with any header and claims."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), digest))}"


def ours(token: str, now: float = NOW) -> bool:
    try:
        return read_session(SECRET, token, now).account_id != ""
    except ApiError as error:
        assert error.code == "invalid_api_key"
        return False


HEADER = {"alg": "HS256", "typ": "JWT"}


def claims(**changes: Any) -> dict[str, Any]:
    made = {"iss": "svc", "sub": "user_a", "iat": NOW, "exp": NOW + SESSION_SECONDS, "jti": "ses_x", **changes}
    return {name: value for name, value in made.items() if value is not ...}


# --- sessions


@given(st.floats(0, SESSION_SECONDS - 1))
def test_session_is_valid_for_8_hours(later: float) -> None:
    assert read_session(SECRET, TOKEN, NOW + later) == ("user_a", 0)


@given(st.floats(SESSION_SECONDS, 1e9))
def test_after_8_hours_a_session_has_expired(later: float) -> None:
    with pytest.raises(ApiError) as caught:
        read_session(SECRET, TOKEN, NOW + later)
    assert caught.value.code == "session_expired"


def test_session_has_the_required_claims_and_a_unique_id() -> None:
    decoded = jwt.decode(TOKEN, SECRET, algorithms=["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert set(decoded) == {"iss", "sub", "iat", "exp", "jti"}
    assert decoded["exp"] - decoded["iat"] == 28_800
    assert issue_session(SECRET, "user_a", NOW) != TOKEN


def test_forgeries_are_refused_for_their_change() -> None:
    assert ours(signed(HEADER, claims()))


@given(st.integers(0, len(TOKEN) - 1), st.characters())
def test_session_with_any_changed_character_is_invalid(place: int, character: str) -> None:
    changed = TOKEN[:place] + character + TOKEN[place + 1 :]
    assert ours(changed) == (changed == TOKEN)


def test_session_with_any_other_last_character_is_invalid() -> None:
    """The last of 43 characters carries two spare bits, which a decoder ignores."""
    assert [character for character in BASE64URL if ours(TOKEN[:-1] + character)] == [TOKEN[-1]]


def test_truncated_session_is_invalid() -> None:
    assert not any(ours(TOKEN[:length]) for length in range(len(TOKEN)))
    assert not any(ours(TOKEN[start:]) for start in range(1, len(TOKEN)))


@given(st.text(min_size=1, max_size=20))
def test_session_with_any_suffix_or_prefix_is_invalid(more: str) -> None:
    assert not ours(TOKEN + more)
    assert not ours(more + TOKEN)


@each("more", ["=", "==", "====", "\n", " ", ".", ".e30", "\0", "A", "%3D"])
def test_session_with_padding_or_blanks_is_invalid(more: str) -> None:
    assert not ours(TOKEN + more)
    assert not ours(TOKEN.replace(".", f"{more}.", 1))


def test_session_in_standard_base64_is_invalid() -> None:
    tokens_with_both = (issue_session(SECRET, "user_a", NOW) for _ in range(1000))
    token = next(token for token in tokens_with_both if {"-", "_"} <= set(token.rpartition(".")[2]))
    assert ours(token)
    assert not ours(token.replace("-", "+").replace("_", "/"))


@given(st.text(max_size=200) | st.binary(max_size=200).map(encoded))
def test_any_other_text_is_an_invalid_session(text: str) -> None:
    assert not ours(text)
    assert not ours(f"{text}.{text}.{text}")


def test_nested_header_or_huge_token_is_invalid() -> None:
    assert not ours(f"{encoded(b'[' * 3000)}.{encoded(b'{}')}.{encoded(b'x')}")
    assert not ours("." * 4096)
    assert not ours("\ud800.\ud800.\ud800")
    assert not ours("A" * 100_000)


@each("secret", [b"", bytes(32), SECRET[:-1], SECRET + b"\0" * 40, SECRET.hex().encode()])
def test_session_signed_with_another_key_is_invalid(secret: bytes) -> None:
    assert not ours(signed(HEADER, claims(), secret))


@each("alg", ["none", "None", "NONE", "nOnE", "", None, 1, ["HS256"], "hs256", "HS384", "HS512", "RS256", "ES256"])
def test_session_of_another_algorithm_is_invalid(alg: Any) -> None:
    header = {"alg": alg, "typ": "JWT"}
    unsigned = f"{encoded(header)}.{encoded(claims())}."
    assert not ours(unsigned)
    for digest in ("sha256", "sha384", "sha512"):
        assert not ours(signed(header, claims(), digest=digest))
    assert not ours(f"{encoded({'typ': 'JWT'})}.{encoded(claims())}.")


def test_rsa_and_hmac_are_not_confused() -> None:
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert not ours(jwt.encode(claims(), key, algorithm="RS256"))
    with pytest.raises(ApiError, match="token"):
        read_session(public[:64], signed(HEADER, claims(), public), NOW)
    assert not ours(signed(HEADER, claims(), public))


@each(
    "header",
    [
        {"alg": "HS256"},
        {"alg": "HS256", "typ": "JWE"},
        {"alg": "HS256", "typ": "jwt"},
        {"alg": "HS256", "typ": "at+jwt"},
        {**HEADER, "kid": "1"},
        {**HEADER, "kid": "../../dev/null"},
        {**HEADER, "jku": "https://evil.example/jwks"},
        {**HEADER, "jwk": {"kty": "oct", "k": encoded(SECRET)}},
        {**HEADER, "x5c": []},
        {**HEADER, "crit": ["exp"]},
        {**HEADER, "b64": False, "crit": ["b64"]},
        {**HEADER, "cty": "JWT"},
        {**HEADER, "zip": "DEF"},
        [],
        "HS256",
        None,
        {},
    ],
)
def test_session_with_another_header_is_invalid(header: Any) -> None:
    assert not ours(signed(header, claims()))


@each(
    "changes",
    [
        *({name: ...} for name in ("iss", "sub", "iat", "exp", "jti")),
        *({name: None} for name in ("iss", "sub", "iat", "exp", "jti")),
        {"iss": "other"},
        {"iss": ["svc"]},
        {"sub": 7},
        {"sub": ["user_a"]},
        {"jti": 7},
        {"aud": "svc"},
        {"nbf": NOW},
        {"admin": True},
        {"exp": NOW + SESSION_SECONDS + 1},
        {"exp": NOW + SESSION_SECONDS - 1},
        {"exp": NOW + 10 * SESSION_SECONDS},
        {"exp": NOW - 1},
        {"iat": NOW - 1},
        {"iat": float(NOW)},
        {"exp": float(NOW + SESSION_SECONDS)},
        {"iat": str(NOW)},
        {"exp": str(NOW + SESSION_SECONDS)},
        {"iat": True, "exp": True + SESSION_SECONDS},
        {"iat": 2**70, "exp": 2**70 + SESSION_SECONDS},
        {"iat": NOW + 3600, "exp": NOW + 3600 + SESSION_SECONDS},
    ],
)
def test_session_with_other_claims_or_lifetime_is_invalid(changes: dict[str, Any]) -> None:
    assert not ours(signed(HEADER, claims(**changes)))


@each("payload", [[], "x", None, 7, b"not json", b"\xff", b'{"iat":NaN}', b"[" * 2000])
def test_session_whose_claims_are_no_object_is_invalid(payload: Any) -> None:
    assert not ours(signed(HEADER, payload))


def test_expired_forgery_is_invalid_not_expired() -> None:
    assert not ours(signed(HEADER, claims(), b"x" * 32), NOW + 2 * SESSION_SECONDS)
    assert not ours(signed(HEADER, claims(aud="x")), NOW + 2 * SESSION_SECONDS)


def test_small_clock_correction_keeps_new_sessions() -> None:
    assert ours(TOKEN, NOW - 30)
    assert not ours(TOKEN, NOW - 120)


# --- keys


def base62(number: int) -> str:
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    return "".join(digits[number // 62**place % 62] for place in range(5, -1, -1))


def test_key_is_prefix_36_random_characters_and_checksum() -> None:
    made = [new_key_token() for _ in range(200)]
    assert len(set(made)) == 200
    for token in made:
        assert len(token) == 49
        assert token.isascii() and token[7:].isalnum()
        assert token.startswith("svc-v1-")
        assert token[43:] == base62(zlib.crc32(token[:43].encode()))
        assert key_hash(token) is not None


def test_checksum_is_crc32_of_the_key() -> None:
    body = "svc-v1-" + "0" * 36
    assert key_hash(body + base62(zlib.crc32(body.encode()))) is not None


KEY = new_key_token()


@given(st.integers(0, 48), st.characters())
def test_a_key_with_any_changed_character_is_not_well_formed(place: int, character: str) -> None:
    changed = KEY[:place] + character + KEY[place + 1 :]
    assert (key_hash(changed) is not None) == (changed == KEY)


def test_a_key_with_two_characters_exchanged_is_not_well_formed() -> None:
    for place in range(48):
        changed = KEY[:place] + KEY[place + 1] + KEY[place] + KEY[place + 2 :]
        assert (key_hash(changed) is not None) == (changed == KEY)


@given(st.text(max_size=60), st.text(alphabet=BASE64URL, min_size=42, max_size=42))
def test_similar_string_is_not_well_formed(text: str, secret: str) -> None:
    for token in (text, KEY + text, text + KEY, KEY[: len(text)], f"svc-v1-{secret}"):
        assert (key_hash(token) is not None) == (token == KEY)


@each("secret", ["-" * 36, "_" * 36, "ä" * 36, "0" * 35 + " ", "٣" * 36, "\ud800" * 36])
def test_a_checksum_does_not_make_another_alphabet_right(secret: str) -> None:
    body = "svc-v1-" + secret
    assert key_hash(body + base62(zlib.crc32(body.encode("utf-8", "surrogatepass")))) is None


@each("prefix", ["svc-v2-", "SVC-v1-", "0000000", "ghp_000"])
def test_a_checksum_does_not_make_another_prefix_right(prefix: str) -> None:
    body = prefix + "0" * 36
    assert key_hash(body + base62(zlib.crc32(body.encode()))) is None


def hash_of(key: str) -> bytes:
    hashed = key_hash(key)
    assert hashed is not None
    return hashed


def test_only_a_well_formed_key_has_a_hash_that_could_be_stored() -> None:
    for _ in range(2):  # the second time it is remembered
        assert hash_of(KEY) == hashlib.sha256(KEY.encode()).digest()
        assert key_hash(KEY[:-1] + ("0" if KEY[-1] != "0" else "1")) is None


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[Any]:
    prepare(tmp_path / "a.db", SCHEMA.read_text(), ())
    connection = connect(tmp_path / "a.db")
    for account in ("user_a", "user_b"):
        connection.execute(
            "INSERT INTO accounts (id, email, email_key, created_at) VALUES (?, ?, ?, 1)",
            (account, f"{account}@x", account),
        )
    yield connection
    connection.close()


def test_only_hash_and_ten_characters_of_a_key_are_stored(conn: Any) -> None:
    shown = tokens.add_key(conn, "user_a", "laptop", KEY, NOW)
    named = {"id", "key_prefix", "name", "created_at", "last_used_at"}
    assert set(shown) == named | {"spent_micros", "monthly_limit_micros", "spent_this_month_micros"}
    assert shown["key_prefix"] == KEY[:10]
    row = dict(conn.execute("SELECT * FROM api_keys").fetchone())
    assert row.pop("token_hash") == hashlib.sha256(KEY.encode()).digest()
    assert KEY[10:] not in repr(row)


def test_a_key_finds_its_account_until_it_is_deleted(conn: Any) -> None:
    key_id = tokens.add_key(conn, "user_a", "laptop", KEY, NOW)["id"]
    found = tokens.holder_of(conn, hash_of(KEY))
    assert found is not None and (found[0], found[3]) == ("user_a", key_id)
    assert tokens.holder_of(conn, hash_of(new_key_token())) is None
    with pytest.raises(ApiError, match="There is no such key"):
        tokens.TABLE.delete(conn, "user_b", key_id)
    tokens.TABLE.delete(conn, "user_a", key_id)
    with pytest.raises(ApiError, match="There is no such key"):
        tokens.TABLE.delete(conn, "user_a", key_id)
    assert tokens.holder_of(conn, hash_of(KEY)) is None


def test_keys_of_the_account_are_listed_newest_first(conn: Any) -> None:
    for number, account in enumerate(("user_a", "user_b", "user_a")):
        tokens.add_key(conn, account, str(number), new_key_token(), NOW + number)
    assert [key["name"] for key in tokens.keys_after(conn, "user_a", None, 10, NOW)] == ["2", "0"]


def test_last_use_never_goes_back(conn: Any) -> None:
    key_id = tokens.add_key(conn, "user_a", "laptop", KEY, NOW)["id"]
    for account, minute in (("user_a", NOW + 60), ("user_a", NOW), ("user_b", NOW + 600)):
        tokens.mark_keys_used(conn, [((account, key_id), minute)])
    found = tokens.holder_of(conn, hash_of(KEY))
    assert found is not None and found[4] == NOW + 60


def test_pyjwt_is_imported_off_the_event_loop() -> None:
    code = """
import asyncio, sys, threading
from svc.auth import tokens
on_main_thread = []
class Noting:
    def find_spec(self, name, path=None, target=None):
        if name == "jwt":
            on_main_thread.append(threading.current_thread() is threading.main_thread())
sys.meta_path.insert(0, Noting())
asyncio.run(tokens.load_jwt())
assert on_main_thread == [False] and "jwt" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
