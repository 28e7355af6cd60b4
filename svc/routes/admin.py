"""Administration: who did what."""

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from svc import audit
from svc.routes.schemas.admin import AUDIT_LIST
from svc.server.gate import Caller
from svc.server.interface import Answer, Section
from svc.server.state import Request
from svc.server.web import listing, page_after, page_limit

describes = Section("Administration").describes


@describes(
    "listAudit",
    "List the audit log",
    "What administrators and the operator changed. Rows are kept when an account is deleted, without the person's names.",
    answers={200: Answer("A page of the log.", AUDIT_LIST)},
    paged=True,
)
async def list_audit(request: Request, caller: Caller) -> Response:
    page = await request.state.db.read(audit.audit_page, page_limit(request), page_after(request))
    return listing(page, lambda row: row)


async def unknown(request: Request, caller: Caller) -> Response:
    """Refuse a path or method that does not exist below /admin: 404, or 405 if the path has other methods."""
    allowed = {
        method
        for route in request.app.router.routes
        if route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods
    }
    if not allowed:
        raise HTTPException(404)
    raise HTTPException(405, headers={"allow": ", ".join(sorted(allowed))})
