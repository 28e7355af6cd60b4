"""What an account can do whose wallet does not cover a call: the advice in the error 402."""

from svc.errors import ApiError
from svc.money import dollars
from svc.months import end_of, month_of

_OPERATOR = "the operator of this service"


def advised(
    refusal: ApiError, allowance_micros: int, now_seconds: float, contact: str | None, *, payments: bool
) -> ApiError:
    """Return the error `insufficient_funds` with what to do: add funds, wait for the next month, or ask `contact`."""
    message, details = [str(refusal)], {}
    if allowance_micros:
        renews_at = end_of(month_of(now_seconds))
        message.append(f"The monthly allowance of {dollars(allowance_micros)} renews on {renews_at[:10]} (UTC).")
        details = {"allowance_micros": allowance_micros, "allowance_renews_at": renews_at}
    if payments:
        message.append("Add funds in the browser, at /checkout.")
    else:
        message.append(f"To get more funds, ask {contact or _OPERATOR}.")
    return ApiError("insufficient_funds", " ".join(message), details=details, anthropic=details)
