"""What the interface document says of the whole: its introduction, and the parts in their order."""

INFO = {
    "title": "svc",
    "summary": "A self-hosted AI platform in one process.",
    "description": "One process with accounts, API keys, limits, a wallet, chat, agents, pictures and speech in front of any "
    "OpenAI-compatible model server, the operator's or the caller's own, and built-in models where there is none.\n\n"
    "**Sign in.** `POST /auth/signup` or `/auth/login` gives a session token, valid for 8 hours; `POST "
    "/user/api-keys` makes an API key, valid until it is deleted. Send either as `Authorization: Bearer <token>`, "
    "in one header; the service tells them apart.\n\n"
    "**JSON in and out**, in UTF-8. Bodies may have 1 MiB (chat and agents 16, artifacts 44), nesting 100 levels. "
    "Unknown fields are ignored; on chat and media they go to the model server. Times are ISO 8601 in UTC, except "
    "`created` in OpenAI's objects (Unix seconds). Money is in micros: millionths of a US dollar.\n\n"
    "**Lists** come newest first, 20 items a page unless `limit` (1 to 100) says otherwise; `has_more` tells that "
    "there are older ones, `after` names the last item of the page before. `GET /user/api-keys` is a bare array.\n\n"
    '**Errors** have one shape, `{"error": {"message", "type", "code", "param"}}`; 429 adds `retry_after`. A path '
    "that does not exist is 404 `not_found`; a method that a path does not take is 405 `method_not_allowed` with "
    "`Allow`. 429 and 503 carry `Retry-After`. Where a retry cannot mend it, `x-should-retry: false` says so. The "
    "checkout pages show errors in HTML.\n\n"
    "**Every answer** has `x-request-id`. GET paths answer HEAD, too. `/v1` answers browsers of other origins "
    "(CORS), without cookies.",
    "license": {"name": "MIT", "identifier": "MIT"},
}
TAGS = {
    "Chat": "Chat completions and models, in OpenAI's wire format.",
    "Media": "Pictures and speech.",
    "Sign-in": "Accounts and sessions.",
    "Account": "The caller's own account and settings.",
    "API keys": "Personal API keys: 49 characters, `svc-v1-` first, the last 6 a checksum. They do what their account may.",
    "Providers": "The caller's own model servers, used with the caller's own keys. Their models are called `<name>/<model>` and "
    "cost nothing here.",
    "Conversations": "What a session's chat is kept in.",
    "Agents": "Goals that a model reaches step by step, with tools.",
    "Projects": "Instructions and caps under which runs and artifacts are filed.",
    "Artifacts": "Files, made by the caller or by an agent.",
    "Support": "Live support by the operator, for pro accounts.",
    "Data": "All that an account has.",
    "Wallet": "Prepaid money, and what it was spent on.",
    "Checkout": "Pages for the browser: the only place where a wallet is filled. They know the person by a cookie; a token "
    "means nothing here.",
    "Service": "About the service itself.",
    "Pages": "What a browser opens.",
}
