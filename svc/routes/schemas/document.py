"""The introduction of the interface document, and its sections in their order."""

INFO = {
    "title": "svc",
    "summary": "A self-hosted AI platform in one process.",
    "description": "Accounts, API keys, limits, a wallet, chat, agents, images and speech in front of any OpenAI-compatible "
    "model server: the operator's, the caller's own, or the built-in models.\n\n"
    "**Sign in.** `POST /auth/signup` and `/auth/login` return a session token that is valid for 8 hours. `POST "
    "/user/api-keys` creates an API key that is valid until you delete it. Send either one in a single header "
    "`Authorization: Bearer <token>`, or as `x-api-key` on `/v1/messages` and `GET /v1/models`.\n\n"
    "**JSON in and out**, in UTF-8. Bodies may have 1 MiB (chat and agents 16, artifacts 44) and a nesting of 100 levels. "
    "Unknown fields are ignored; on chat completions and media they are sent to the model server. Times are ISO 8601 in UTC, "
    "except `created` in OpenAI's objects (Unix seconds). Money is in micros: millionths of a US dollar.\n\n"
    "**Lists** are sorted newest first. A page has 20 items, or as many as `limit` (1 to 100) sets. If `has_more` is true, "
    "there are older items: send the id of the last item as `after`. `GET /user/api-keys` is a bare array.\n\n"
    '**Errors** have one shape: `{"error": {"message", "type", "code", "param"}}`. 429 adds `retry_after`. '
    "Under `/v1/messages` they have the shape of Anthropic's API. The checkout pages show errors in HTML. An unknown path "
    "returns 404 `not_found`. A method that a path does not support returns 405 `method_not_allowed` with `Allow`. 429 and "
    "503 have `Retry-After`. `x-should-retry: false` means that a retry cannot succeed.\n\n"
    "**Every answer** has `x-request-id`. GET paths also support HEAD. `/v1` allows browsers of other origins (CORS), "
    "without cookies.",
    "license": {"name": "MIT", "identifier": "MIT"},
}
TAGS = {
    "Chat": "Chat completions, OpenAI's Responses and Anthropic's Messages, with the same models, limits and prices.",
    "Media": "Images and speech.",
    "Sign-in": "Accounts and sessions.",
    "Account": "The caller's own account and settings.",
    "API keys": "Personal API keys. A key has 49 characters: it begins with `svc-v1-`, and the last 6 are a checksum. It has all "
    "rights of its account except to delete it.",
    "Providers": "The caller's own model servers, used with the caller's own keys. Their models are called `<name>/<model>` and "
    "are free here.",
    "Conversations": "The stored chats of sessions.",
    "Agents": "Runs that reach a goal step by step, with a model and tools.",
    "Projects": "Groups of runs, artifacts and conversations, with instructions and a limit on steps.",
    "Artifacts": "Files, created by the caller or by an agent.",
    "Support": "Live support by the operator, for pro accounts.",
    "Data": "Export of the account's data.",
    "Wallet": "The prepaid balance and its use.",
    "Checkout": "Web pages to add funds. They recognize the account by a cookie and ignore tokens.",
    "Service": "Health, metrics and this document.",
    "Pages": "The web application.",
}
