"""A handler with misspelt names, which mypy finds: in its strict mode a comment that ignores no error is an error."""

from starlette.responses import Response

from svc.auth import accounts
from svc.server.guards import Caller
from svc.server.state import Request
from svc.server.web import no_content


async def handler(request: Request, caller: Caller) -> Response:
    state = request.state
    account = caller.account(state.db)
    await state.db.write(accounts.delete_account, account.id)
    print(account.email, caller.tier)
    await state.db.wrote(accounts.delete_account, account.id)  # type: ignore[attr-defined]
    print(account.pasword)  # type: ignore[attr-defined]
    print(account.password_hash)  # type: ignore[attr-defined]
    print(caller.teir)  # type: ignore[attr-defined]
    return no_content()
