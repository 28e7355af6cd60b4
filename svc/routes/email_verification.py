"""The first verification of an email address: it removes what another person may have planted in the account.

Anyone can sign up with the address of another person, link an identity, and wait until that person comes.
"""

import sqlite3

from svc.auth import accounts, identities, oauth_flows, tokens
from svc.inference import providers


def verify_email(
    tx: sqlite3.Connection, account_id: str, now_seconds: float, *, by_identity: tuple[str, str] | None = None
) -> None:
    """Mark the address as verified. The first time, delete what another person may have made before.

    That is: identities (except the issuer and subject `by_identity`, which verified the address), unfinished sign-ins, and a
    default model of an own provider. Checkout cookies made before are not valid any more.
    """
    if not accounts.verify_email(tx, account_id, now_seconds):
        return
    identities.delete_identities(tx, account_id, but=by_identity)
    oauth_flows.delete_flows(tx, account_id)
    account = accounts.account_by_id(tx, account_id)
    if account is not None and account.default_model is not None:
        name, _, _ = account.default_model.partition("/")
        if providers.provider_by_name(tx, account_id, name) is not None:
            accounts.update_account(tx, account_id, {"default_model": None})


def delete_keys_and_providers(tx: sqlite3.Connection, account_id: str) -> None:
    """Delete all API keys and own model providers, and a default model of such a provider."""
    while tokens.delete_some_keys(tx, account_id):
        pass
    names = providers.delete_providers(tx, account_id)
    account = accounts.account_by_id(tx, account_id)
    if account is not None and account.default_model is not None and account.default_model.partition("/")[0] in names:
        accounts.update_account(tx, account_id, {"default_model": None})
