"""The secrets of a sign-in: derived, so that none is stored, and PKCE of RFC 7636."""

from svc.auth.oauth import Flow, new_flow


def test_each_state_has_its_own_secrets() -> None:
    one, again, other = (new_flow(b"k" * 32, "https://svc/back", state) for state in ("s", "s", "t"))
    assert one == again
    assert len({one.nonce, one.verifier, one.state, other.nonce, other.verifier, other.state}) == 6
    assert new_flow(b"l" * 32, "https://svc/back", "s").verifier != one.verifier
    assert 43 <= len(one.verifier) <= 128
    assert one.verifier not in repr(one) and one.nonce not in repr(one) and "state='s'" not in repr(one)


def test_the_challenge_is_the_one_of_rfc_7636_appendix_b() -> None:
    flow = Flow("https://svc/back", "s", "n", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert flow.challenge == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
