"""Parsers of settings: the rules that svc/config.py combines.
Each setting's wrong values are in tests/test_config.py.
"""

import pytest

from svc.parsers import domains, integer, mail_server


def test_domains_are_compared_in_lower_case() -> None:
    assert domains("Corp.example, b.test") == ("corp.example", "b.test")


def test_integer_is_refused_with_its_rule() -> None:
    parse = integer(1, 5, "must be 1 to 5")
    assert parse("5") == 5
    for text in ("0", "6", "1.0", "", "1" * 5_000):
        with pytest.raises(ValueError, match="must be 1 to 5"):
            parse(text)


def test_password_of_the_mail_server_is_not_shown() -> None:
    server = mail_server("smtp://ada:secret-word@mail.example?from=svc@mail.example")
    assert (server.password, server.port, server.tls) == ("secret-word", 587, "starttls") and "secret-word" not in repr(
        server
    )
