"""The table of endpoints with their guards, and the start of the application. `python app.py` serves."""

import gc
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # during the start, which the end of a terminal must not stop
    gc.disable()  # during the start, whose objects stay: collections would take a seventh of its time

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache, partial
from importlib import import_module
from typing import Any

import orjson
from starlette.applications import Starlette

from svc import quota, secrets
from svc.agents import run_records
from svc.billing import checkout_pages, wallet
from svc.config import Config, from_environ
from svc.content import artifact_contents, fulltext, history, idempotency
from svc.content import imports as stored_imports
from svc.content import project_files as stored_files
from svc.db import open_database
from svc.deletion.slices import delete_old_hourly, end_answers, finish_deletions
from svc.errors import ApiError, StartError
from svc.log import capture_library_logs
from svc.routes import (
    admin,
    admin_reports,
    admin_tools,
    agents,
    api_keys,
    artifacts,
    auth,
    billing,
    chat,
    chat_tools,
    checkout,
    conversations,
    export,
    imports,
    links,
    local_models,
    media,
    memory,
    oauth,
    operations,
    pages,
    project_files,
    projects,
    prompts,
    providers,
    service,
    shares,
    summaries,
    support,
    tool_servers,
    transcriptions,
    user,
)
from svc.routes.checkout import from_our_page, in_html, recognised
from svc.server.first_use import prepare
from svc.server.guards import (
    administered,
    key_in_header,
    linked,
    metered,
    open_signup,
    per_ip,
    pro_only,
    session_only,
    signed_in,
    with_passwords,
)
from svc.server.http.head import METHODS
from svc.server.idempotency import idempotent
from svc.server.middleware import Edge
from svc.server.rotation import check_master, rotate_running
from svc.server.serve import run
from svc.server.state import State
from svc.server.status import now, settings, status_socket
from svc.server.web import Routes
from svc.version import VERSION

ROUTES = [
    ("POST", "/v1/chat/completions", signed_in(idempotent(metered(chat.create_chat_completion)))),
    ("POST", "/v1/responses", signed_in(idempotent(metered(chat.create_response)))),
    ("GET", "/v1/responses", signed_in(chat.refuse_web_socket)),
    ("POST", "/v1/messages", key_in_header(signed_in(idempotent(metered(chat.create_messages_answer))))),
    ("POST", "/v1/messages/count_tokens", key_in_header(signed_in(chat.count_message_tokens))),
    ("POST", "/v1/images/generations", signed_in(idempotent(media.create_image))),
    ("POST", "/v1/audio/generate", signed_in(idempotent(media.generate_audio))),
    ("POST", "/v1/audio/speech", signed_in(idempotent(media.create_speech))),
    ("POST", "/v1/audio/transcriptions", signed_in(idempotent(transcriptions.create_transcription))),
    ("POST", "/v1/agents/run", signed_in(idempotent(metered(agents.run_agent)))),
    ("GET", "/v1/agents/runs", signed_in(agents.list_runs)),
    ("GET", "/v1/agents/runs/{run_id}", signed_in(agents.get_run)),
    ("POST", "/v1/agents/runs/{run_id}/stop", signed_in(agents.stop_run)),
    ("GET", "/v1/tools", signed_in(chat_tools.list_tools)),
    ("GET", "/v1/models", key_in_header(signed_in(chat.list_models))),
    ("GET", "/v1/models/{model_id:path}", signed_in(chat.get_model)),
    ("POST", "/auth/signup", per_ip("signup")(with_passwords(open_signup(auth.sign_up)))),
    ("POST", "/auth/login", per_ip("login")(with_passwords(auth.log_in))),
    ("POST", "/auth/logout", signed_in(auth.log_out)),
    ("POST", "/auth/password-reset", per_ip("password_reset")(with_passwords(links.request_password_reset))),
    ("POST", "/auth/password-reset/confirm", per_ip("password_reset_confirm")(auth.confirm_password_reset)),
    ("POST", "/auth/verify-email", links.verify_email),
    ("GET", "/auth/oauth", oauth.list_identity_providers),
    ("POST", "/auth/oauth/session", per_ip("oauth")(auth.change_oauth_code)),
    ("GET", "/auth/oauth/{provider}", per_ip("oauth")(oauth.begin_oauth)),
    ("GET", "/auth/oauth/{provider}/callback", per_ip("oauth")(oauth.finish_oauth)),
    ("GET", "/user/me", signed_in(user.get_me)),
    ("PATCH", "/user/me", signed_in(user.update_me)),
    ("DELETE", "/user/me", signed_in(session_only(user.delete_me))),
    ("POST", "/user/password", with_passwords(signed_in(session_only(user.change_password)))),
    ("POST", "/user/verify-email", signed_in(links.request_verification)),
    ("GET", "/user/settings", signed_in(user.get_settings)),
    ("PATCH", "/user/settings", signed_in(user.update_settings)),
    ("GET", "/user/api-keys", signed_in(api_keys.list_api_keys)),
    ("POST", "/user/api-keys", signed_in(api_keys.create_api_key)),
    ("PATCH", "/user/api-keys/{key_id}", signed_in(api_keys.update_api_key)),
    ("DELETE", "/user/api-keys/{key_id}", signed_in(api_keys.delete_api_key)),
    ("GET", "/user/identities", signed_in(session_only(oauth.list_identities))),
    ("POST", "/user/identities/{identity}", signed_in(session_only(oauth.begin_linking))),
    ("DELETE", "/user/identities/{identity}", signed_in(session_only(oauth.delete_identity))),
    ("GET", "/user/export", signed_in(export.export_account)),
    ("GET", "/user/memory", signed_in(memory.list_memory)),
    ("DELETE", "/user/memory/{message_id}", signed_in(memory.forget_message)),
    ("POST", "/user/memory/{message_id}", signed_in(memory.remember_message)),
    ("GET", "/user/import", signed_in(imports.list_imports)),
    ("POST", "/user/import", signed_in(imports.create_import)),
    ("GET", "/user/import/{import_id}", signed_in(imports.get_import)),
    ("DELETE", "/user/import/{import_id}", signed_in(imports.undo_import)),
    ("GET", "/user/shares", signed_in(shares.list_shares)),
    ("DELETE", "/user/shares/{share_id}", signed_in(shares.delete_share)),
    ("GET", "/user/providers", signed_in(providers.list_providers)),
    ("POST", "/user/providers", signed_in(providers.create_provider)),
    ("GET", "/user/providers/{provider_id}", signed_in(providers.get_provider)),
    ("PATCH", "/user/providers/{provider_id}", signed_in(providers.update_provider)),
    ("DELETE", "/user/providers/{provider_id}", signed_in(providers.delete_provider)),
    ("POST", "/user/providers/{provider_id}/test", signed_in(providers.test_provider)),
    ("GET", "/user/tool-servers", signed_in(tool_servers.list_tool_servers)),
    ("POST", "/user/tool-servers", signed_in(tool_servers.create_tool_server)),
    ("GET", "/user/tool-servers/{tool_server_id}", signed_in(tool_servers.get_tool_server)),
    ("PATCH", "/user/tool-servers/{tool_server_id}", signed_in(tool_servers.update_tool_server)),
    ("DELETE", "/user/tool-servers/{tool_server_id}", signed_in(tool_servers.delete_tool_server)),
    ("POST", "/user/tool-servers/{tool_server_id}/test", signed_in(tool_servers.test_tool_server)),
    ("GET", "/projects", signed_in(projects.list_projects)),
    ("POST", "/projects", signed_in(projects.create_project)),
    ("GET", "/projects/{project_id}", signed_in(projects.get_project)),
    ("PATCH", "/projects/{project_id}", signed_in(projects.update_project)),
    ("DELETE", "/projects/{project_id}", signed_in(projects.delete_project)),
    ("GET", "/projects/{project_id}/files", signed_in(project_files.list_project_files)),
    ("POST", "/projects/{project_id}/files", signed_in(project_files.add_project_file)),
    ("DELETE", "/projects/{project_id}/files/{artifact_id}", signed_in(project_files.remove_project_file)),
    ("GET", "/prompts", signed_in(prompts.list_prompts)),
    ("POST", "/prompts", signed_in(prompts.create_prompt)),
    ("GET", "/prompts/shared", signed_in(prompts.list_shared_prompts)),
    ("POST", "/prompts/import", signed_in(prompts.import_prompts)),
    ("GET", "/prompts/{prompt_id}", signed_in(prompts.get_prompt)),
    ("PATCH", "/prompts/{prompt_id}", signed_in(prompts.update_prompt)),
    ("DELETE", "/prompts/{prompt_id}", signed_in(prompts.delete_prompt)),
    ("GET", "/artifacts", signed_in(artifacts.list_artifacts)),
    ("POST", "/artifacts", signed_in(artifacts.create_artifact)),
    ("GET", "/artifacts/{artifact_id}", signed_in(artifacts.get_artifact)),
    ("PATCH", "/artifacts/{artifact_id}", signed_in(artifacts.update_artifact)),
    ("DELETE", "/artifacts/{artifact_id}", signed_in(artifacts.delete_artifact)),
    ("GET", "/artifacts/{artifact_id}/content", linked(artifacts.get_artifact_content)),
    ("PUT", "/artifacts/{artifact_id}/content", signed_in(artifacts.replace_artifact_content)),
    ("GET", "/artifacts/{artifact_id}/text", signed_in(artifacts.get_artifact_text)),
    ("GET", "/artifacts/{artifact_id}/passages", signed_in(project_files.list_artifact_passages)),
    ("GET", "/conversations", signed_in(conversations.list_conversations)),
    ("POST", "/conversations", signed_in(conversations.create_conversation)),
    ("GET", "/conversations/{conversation_id}", signed_in(conversations.get_conversation)),
    ("PATCH", "/conversations/{conversation_id}", signed_in(conversations.update_conversation)),
    ("DELETE", "/conversations/{conversation_id}", signed_in(conversations.delete_conversation)),
    ("GET", "/conversations/{conversation_id}/export", signed_in(conversations.export_conversation)),
    ("POST", "/conversations/{conversation_id}/shares", signed_in(shares.create_share)),
    ("POST", "/conversations/{conversation_id}/fork", signed_in(shares.fork_conversation)),
    ("POST", "/conversations/{conversation_id}/stop", signed_in(conversations.stop_answer)),
    ("POST", "/conversations/{conversation_id}/approve", signed_in(metered(chat_tools.approve_calls))),
    ("POST", "/conversations/{conversation_id}/summarize", signed_in(idempotent(metered(summaries.summarize)))),
    ("GET", "/conversations/{conversation_id}/stream", signed_in(conversations.follow_answer)),
    ("GET", "/conversations/{conversation_id}/messages", signed_in(conversations.list_messages)),
    ("POST", "/conversations/{conversation_id}/messages", signed_in(conversations.create_message)),
    ("GET", "/shared/{token}", per_ip("shared")(shares.get_shared)),
    ("GET", "/shared/{token}/pictures/{picture}", per_ip("shared")(shares.get_shared_picture)),
    (
        "GET",
        "/conversations/{conversation_id}/messages/{message_id}/versions",
        signed_in(conversations.list_versions),
    ),
    ("GET", "/support/conversations", signed_in(support.list_support_conversations)),
    ("POST", "/support/conversations", signed_in(pro_only(support.create_support_conversation))),
    ("GET", "/support/conversations/{support_id}", signed_in(support.get_support_conversation)),
    ("POST", "/support/conversations/{support_id}/messages", signed_in(support.create_support_message)),
    ("POST", "/support/conversations/{support_id}/close", signed_in(support.close_support_conversation)),
    ("GET", "/billing/account", signed_in(billing.get_billing_account)),
    ("GET", "/billing/ledger", signed_in(billing.list_ledger)),
    ("GET", "/billing/usage", signed_in(billing.list_usage)),
    ("POST", "/billing/webhook", billing.receive_payment_event),
    ("GET", "/checkout", in_html(recognised(checkout.get_checkout_page))),
    ("POST", "/checkout", in_html(from_our_page(recognised(checkout.begin_checkout)))),
    (
        "POST",
        "/checkout/sign-in",
        in_html(from_our_page(per_ip("login")(with_passwords(checkout.sign_in_to_checkout)))),
    ),
    ("GET", "/checkout/return", in_html(checkout.get_checkout_return_page)),
    ("GET", "/checkout/sandbox/{session_id}", in_html(recognised(checkout.get_sandbox_page))),
    ("POST", "/checkout/sandbox/{session_id}", in_html(from_our_page(recognised(checkout.pay_in_sandbox)))),
    ("GET", "/admin/users", administered(admin.list_users)),
    ("POST", "/admin/users", administered(admin.create_user)),
    ("GET", "/admin/users/{account_id}", administered(admin.get_user)),
    ("PATCH", "/admin/users/{account_id}", administered(admin.update_user)),
    ("DELETE", "/admin/users/{account_id}", administered(admin.delete_user)),
    ("POST", "/admin/users/{account_id}/reset-link", administered(admin.create_reset_link)),
    ("GET", "/admin/users/{account_id}/api-keys", administered(admin.list_user_api_keys)),
    ("DELETE", "/admin/users/{account_id}/api-keys", administered(admin.delete_user_api_keys)),
    ("DELETE", "/admin/users/{account_id}/api-keys/{key_id}", administered(admin.delete_user_api_key)),
    ("POST", "/admin/users/{account_id}/credits", administered(operations.create_credit)),
    ("POST", "/admin/users/{account_id}/debits", administered(operations.create_debit)),
    ("GET", "/admin/prompts", administered(prompts.list_all_shared_prompts)),
    ("PUT", "/admin/prompts", administered(prompts.share_prompts)),
    ("GET", "/admin/catalog", administered(operations.get_catalog)),
    ("GET", "/admin/models", administered(local_models.list_local_models)),
    ("POST", "/admin/models", administered(local_models.add_local_model)),
    ("DELETE", "/admin/models/{name}", administered(local_models.remove_local_model)),
    ("POST", "/admin/reload", administered(operations.reload_catalog)),
    ("POST", "/admin/backup", administered(operations.create_backup)),
    ("GET", "/admin/usage", administered(admin_reports.get_usage)),
    ("GET", "/admin/tools", administered(admin_tools.get_tools)),
    ("GET", "/admin/status", administered(admin.get_status)),
    ("GET", "/admin/support/conversations", administered(support.list_inbox)),
    ("GET", "/admin/support/conversations/{support_id}", administered(support.get_inbox_conversation)),
    ("POST", "/admin/support/conversations/{support_id}/messages", administered(support.reply_to_user)),
    ("POST", "/admin/support/conversations/{support_id}/close", administered(support.close_inbox_conversation)),
    ("GET", "/admin/audit", administered(admin_reports.list_audit)),
    ("GET", "/admin/sign-ins", administered(admin_reports.list_sign_ins)),
    ("GET", "/healthz", service.get_health),
    ("GET", "/readyz", service.get_readiness),
    ("GET", "/metrics", service.get_metrics),
    ("GET", "/openapi.json", service.get_openapi),
    ("GET", "/docs", pages.get_docs_page),
    ("GET", "/preview", pages.get_preview_page),
    ("GET", "/password-reset", pages.get_password_reset_page),
    ("GET", "/verify-email", pages.get_verify_email_page),
    ("GET", "/static/{path:path}", pages.get_static_file),
    ("GET", "/", pages.get_start_page),
]
# Everything else below /admin has the same guards, so that only administrators learn which paths and methods exist.
_HIDDEN = (METHODS, "/admin/{path:path}", administered(admin.unknown))
_COMPILED = Routes([*ROUTES, _HIDDEN])  # shared by all applications, because it takes longer than the rest of one


def create_app(config: Config) -> Starlette:
    """Return the ASGI application for `config`. Its lifespan opens everything and raises StartError."""
    state = State(config)
    app = Starlette(routes=_COMPILED.all, lifespan=partial(_lifespan, state=state))
    # In place of Starlette's own layers, which take as long as a short answer. The server calls it without `app`.
    app.middleware_stack = app.state.answer = Edge(app.router, _COMPILED, state, pages.not_found)
    app.state.drain = state.drain
    app.state.start_error = None
    app.state.reload = partial(operations.read_catalog, state)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette, state: State) -> AsyncIterator[dict[str, State]]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            await _open_storage(state, stack)
            await state.open(stack)
        except StartError as error:
            app.state.start_error = error
            raise
        await _start_work(app, state, stack)
        yield {"service": state}


async def _open_storage(state: State, stack: contextlib.AsyncExitStack) -> None:
    """Lock the data folder, open the database, and end what a crash left open. Raises StartError."""
    folder = state.folder = stack.enter_context(contextlib.closing(secrets.open_folder(state.config.data_dir)))
    db = state.db = await open_database(
        folder.path / secrets.DATABASE, between=_work_between, committed=state.metrics.count_commit
    )
    stack.push_async_callback(db.close)
    stack.push_async_callback(artifact_contents.finish_deletions, db)
    stack.callback(asyncio.create_task(fulltext.purge_in_time(db)).cancel)
    try:
        warning = await db.write(_end_leftovers, state.config, folder)
    except ApiError as error:
        raise StartError("the database cannot be written") from error
    folder.keep_master()
    if warning:
        state.log("secrets", level="warning", message=warning)


def _work_between(tx: sqlite3.Connection) -> bool:
    """Do some milliseconds of background work of each kind; return whether there may be more."""
    kinds = (artifact_contents.delete_unused, idempotency.delete_released, stored_files.delete_unused)
    return sum(work(tx) for work in (fulltext.index_some, *kinds)) > 0


def _end_leftovers(tx: sqlite3.Connection, config: Config, folder: secrets.DataFolder) -> str | None:
    """End what a crash left open, in one transaction, because commits take time. Return a warning to log."""
    warning = check_master(tx, folder, config.new_secrets)
    quota.set_limit(tx, config.account_bytes)
    wallet.release_all(tx)  # of requests that ended with the process
    quota.release_all(tx)
    idempotency.release_all(tx)
    run_records.end_interrupted_runs(tx, config.clock())
    history.end_interrupted_answers(tx)
    artifact_contents.leave_unfinished(tx)
    stored_imports.end_interrupted(tx)
    stored_files.leave_unfinished(tx)
    return warning


async def _start_work(app: Starlette, state: State, stack: contextlib.AsyncExitStack) -> None:
    config, db = state.config, state.db
    state.reload = lambda: app.state.reload()  # that of the server, which reads certificates, too
    stack.push_async_callback(state.backups.close)
    app.state.listening = partial(_listening, state, stack)
    state.interface = cache(lambda: orjson.dumps(service.document(ROUTES, config.base_url)))
    capture_library_logs(stack.enter_context(state.log))
    state.engines.catalog.start()
    await state.tool_servers.reload()
    state.tool_servers.start()
    ending = end_answers(db, state.drain, state.item_memory)
    for work in (finish_deletions(db), ending, delete_old_hourly(db, config), state.file_reading.run()):
        stack.callback(asyncio.create_task(work).cancel)
    if state.payments.mode == "sandbox" and not config.local_posture:
        state.log("payments", level="warning", message="SVC_PAYMENTS=sandbox: anyone who signs in can add test money")
    answers: dict[str, Callable[..., Any]] = {
        "status": partial(now, state),
        "settings": partial(settings, config),
        "reload": state.reload,
        "rotate-secrets": partial(rotate_running, state),
        "request": state.log.lines_of,
    }
    try:
        await stack.enter_async_context(status_socket(state.folder.path, answers))
    except OSError as error:  # the file system has no sockets: only 'svc status' needs them
        state.log("status", level="warning", message="svc status will not work", error=error.strerror)


def _listening(state: State, stack: contextlib.AsyncExitStack) -> None:
    state.log("start", version=VERSION, base_url=state.config.base_url)
    stack.callback(asyncio.create_task(prepare(_first_use(state.config))).cancel)


def _first_use(config: Config) -> Iterator[Callable[[], object]]:
    """Yield the steps of svc/server/first_use.py."""
    if config.passwords:
        yield partial(import_module, "argon2")
    if config.builtin:
        yield partial(import_module, "svc.builtin.assistant")
        yield partial(import_module, "_strptime")  # for its dates
    yield partial(import_module, "tomllib")  # for the texts
    yield from pages.first_use(config)
    yield from (partial(checkout_pages.template, name) for name in checkout_pages.TEMPLATES)
    if config.smtp_url is not None:
        yield from links.first_use()
    yield partial(import_module, "zipfile")  # for the export of an account


def main() -> int:
    return run(partial(from_environ, os.environ), create_app)


if __name__ == "__main__":
    sys.exit(main())
