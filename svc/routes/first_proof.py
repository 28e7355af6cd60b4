"""The first proof that an account's e-mail is its person's: what somebody else may have planted before goes.

Anybody can sign up with anybody's address, link an identity of their own and wait for the owner of the address to come.
"""

import sqlite3

from svc.auth import accounts, identities, oauth_flows, tokens
from svc.inference import providers


def prove(tx: sqlite3.Connection, account_id: str, now_seconds: float, *, by_identity: tuple[str, str] | None = None) -> None:
    """Notes that the address is proved; the first time, identities linked before go (but for the issuer and subject in
    `by_identity`, the proof itself), sign-ins under way, and a default model of an own provider.

    The checkout cookies from before end by the time of the proof.
    """
    if not accounts.prove_email(tx, account_id, now_seconds):
        return
    identities.delete_identities(tx, account_id, but=by_identity)
    oauth_flows.end_all_of(tx, account_id)
    account = accounts.account_by_id(tx, account_id)
    if account is not None and account.default_model is not None:
        name, _, _ = account.default_model.partition("/")
        if providers.provider_by_name(tx, account_id, name) is not None:
            accounts.update_account(tx, account_id, {"default_model": None})


def delete_keys_and_providers(tx: sqlite3.Connection, account_id: str) -> None:
    """Deletes every API key and own model provider, and with them a default model that no provider is left for."""
    while tokens.delete_some_keys(tx, account_id):
        pass
    names = providers.delete_providers(tx, account_id)
    account = accounts.account_by_id(tx, account_id)
    if account is not None and account.default_model is not None and account.default_model.partition("/")[0] in names:
        accounts.update_account(tx, account_id, {"default_model": None})
