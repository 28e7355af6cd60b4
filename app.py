"""The map: every endpoint with its guards, the error handlers, and what lives as long as the server. `python app.py` serves."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from svc import builtin, secrets, upstream
from svc.accounts import Passwords
from svc.catalog import BUILTIN, Catalog, Model, local_servers, read_file
from svc.config import Config, from_environ
from svc.db import open_database
from svc.errors import ApiError, StartError
from svc.gate import metered, per_ip, session_only, signed_in
from svc.limits import Limits
from svc.log import Log, capture_library_logs
from svc.outbound import Outbound
from svc.routes import auth, chat, service, user
from svc.serve import run
from svc.sse import ClientGone, Drain
from svc.web import Bodies, Edge, Entrance, cors_for_v1, error_reply, gone_reply, http_error_reply, routes

ROUTES = [
    ("POST", "/v1/chat/completions", signed_in(metered(chat.create))),
    ("GET", "/v1/models", signed_in(chat.list_models)),
    ("GET", "/v1/models/{model_id:path}", signed_in(chat.show_model)),
    ("POST", "/auth/signup", per_ip("signup")(auth.signup)),
    ("POST", "/auth/login", per_ip("login")(auth.login)),
    ("POST", "/auth/logout", signed_in(auth.logout)),
    ("POST", "/auth/password-reset", per_ip("password_reset")(auth.request_password_reset)),
    ("POST", "/auth/password-reset/confirm", auth.confirm_password_reset),
    ("GET", "/user/me", signed_in(user.show_me)),
    ("PATCH", "/user/me", signed_in(user.change_me)),
    ("DELETE", "/user/me", signed_in(session_only(user.delete_me))),
    ("GET", "/user/settings", signed_in(user.show_settings)),
    ("PATCH", "/user/settings", signed_in(user.change_settings)),
    ("GET", "/user/api-keys", signed_in(user.list_keys)),
    ("POST", "/user/api-keys", signed_in(user.create_key)),
    ("DELETE", "/user/api-keys/{key_id}", signed_in(user.delete_key)),
    ("GET", "/healthz", service.healthz),
    ("GET", "/readyz", service.readyz),
    ("GET", "/openapi.json", service.openapi),
    ("GET", "/docs", service.page),
    ("GET", "/password-reset", service.page),
    ("GET", "/static/{name}", service.static),
    ("GET", "/", service.page),
]


def create_app(config: Config) -> Starlette:
    """The ASGI application for `config`. Opens nothing: that is the lifespan's work, which raises StartError."""
    log, drain, bodies = Log(config.log_fd), Drain(), Bodies()
    app = Starlette(
        routes=routes(ROUTES),
        middleware=[
            Middleware(Edge, log=log, bodies=bodies),
            Middleware(cors_for_v1, config=config),
            Middleware(Entrance, config=config, draining=lambda: drain.draining),
        ],
        exception_handlers={ApiError: error_reply, HTTPException: http_error_reply, ClientGone: gone_reply},
        lifespan=partial(_lifespan, config=config, log=log, drain=drain, bodies=bodies),
    )
    app.router.redirect_slashes = False  # it would build a redirect from the Host header, and drop the body
    app.state.drain = drain
    app.state.start_error = None
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette, config: Config, log: Log, drain: Drain, bodies: Bodies) -> AsyncIterator[dict[str, Any]]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            folder = secrets.open_folder(config.data_dir)
            stack.callback(folder.close)
            db = await open_database(folder.path / "service.db")
            stack.push_async_callback(db.close)
            outbound = Outbound()
            stack.push_async_callback(outbound.aclose)
            catalog = _catalog(config, outbound)
        except StartError as error:
            app.state.start_error = error
            raise
        stack.push_async_callback(catalog.close)
        passwords = Passwords(config.argon2_memory_kib, config.argon2_time_cost)
        stack.callback(passwords.close)
        capture_library_logs(stack.enter_context(log))
        catalog.start()
        yield {
            "config": config,
            "db": db,
            "limits": Limits(config.monotonic),
            "catalog": catalog,
            "outbound": outbound,
            "passwords": passwords,
            "clock": config.clock,
            "keys": {"session": folder.derive("session")},
            "drain": drain,
            "bodies": bodies,
            "log": log,
        }


def _catalog(config: Config, outbound: Outbound) -> Catalog:
    models, listed, default_model = read_file(config.catalog, config.environ) if config.catalog else ([], [], None)
    if config.builtin:
        models = [Model(f"{BUILTIN}/{name}", name, None, model.kind, model.prices) for name, model in builtin.MODELS.items()] + models
    if config.discovers:
        listed = listed + local_servers()
    return Catalog(models, listed, default_model, partial(upstream.models, outbound), int(config.clock()))


def main() -> int:
    """Serves until a signal; the exit status."""
    try:
        return run(from_environ(os.environ), create_app)
    except StartError as error:
        print(f"svc: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
