"""Exact arithmetic on a written expression, by a small parser that checks bounds before every step.

text -> tokens -> precedence climbing over fractions -> integer, exact decimal, or 28 significant digits
"""

import operator
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

MAX_LENGTH = 1_000
MAX_DEPTH = 50
MAX_DIGITS = 1_000
MAX_EXPRESSIONS = 8
SIGNIFICANT_DIGITS = 28
_TOO_LARGE = f"A number in the calculation has more than {MAX_DIGITS:,} digits."

_LIMIT = 10**MAX_DIGITS
_LIMIT_BITS = _LIMIT.bit_length()
_ROUNDED = Context(prec=SIGNIFICANT_DIGITS)
_TOKEN = re.compile(r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|\*\*|//|[-+*/%^()])")
_TYPED_SIGNS = str.maketrans({"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-"})
_UNARY, _POWER = 3, 4
# Compiled when they are first used: agents load this module at the start.
_NUMBER = r"(?<![\d.])(\d{1,30}(?:\.\d{1,30})?)"
_PERCENT = rf"{_NUMBER} ?(?:%|percent)"
_THE = r"(?:(?:an?|the|my) )?"
_SPOKEN_ARITHMETIC = {
    r"\d{4}-\d{2}-\d{2}": " ; ",  # a date
    r"[$\u20ac\u00a3] ?(?=\d)": "",
    r"(?<=\d),(?=\d{3}(?!\d))": "",
    rf"\b(?:increase|raise) {_NUMBER} by {_PERCENT}": r"\1 * (1 + \2 / 100)",
    rf"\b(?:decrease|reduce|lower) {_NUMBER} by {_PERCENT}": r"\1 * (1 - \2 / 100)",
    rf"{_PERCENT} off (?:of )?{_THE}{_NUMBER}": r"\2 * (1 - \1 / 100)",
    rf"\bpercent(?:age)? of {_NUMBER} is {_NUMBER}": r" \2 / \1 * 100",
    rf"{_NUMBER} is what percent(?:age)? of {_NUMBER}": r"\1 / \2 * 100",
    rf"\bsplit {_THE}(?:bill of )?{_NUMBER} (?:among|between|by|for) {_NUMBER}": r"\1 / \2",
    r"\bdivided by\b": "/",
    r"\b(?:multiplied by|times)\b": "*",
    r"\b(?:sum of|add) (-?[\d.]+) (?:and|to) (-?[\d.]+)": r"\1 + \2",
    r"\b(?:product of|multiply) (-?[\d.]+) (?:and|by|with) (-?[\d.]+)": r"\1 * \2",
    r"\bdivide (-?[\d.]+) by (-?[\d.]+)": r"\1 / \2",
    r"\bsubtract (-?[\d.]+) from (-?[\d.]+)": r"\2 - \1",
    r"\bplus\b": "+",
    r"\bminus\b": "-",
    r"\b(?:raised )?to the power of\b": "**",
    r"(?<=[\d)]) squared\b": " ** 2",
    r"(?<=[\d)]) cubed\b": " ** 3",
    r"(?<=\d) ?x ?(?=[\d(])": " * ",
    rf"(?<=\d) ?(?:%|percent)(?: \w+)? (?:of|on|for) {_THE}(?:\w+ of )?(?=[\d(])": " / 100 * ",
}
_ASKS = (
    r"\b(?:compute|calculate|work out|solve|what(?:'s| is| are|s)|how much|result of|sum of|product of"
    r"|add|subtract|multiply|divide|split|increase|raise|decrease|reduce|lower)\b|=\s?\??$|\d ?(?:%|percent)"
    r"(?: \w+)? (?:of|on|off|for)\b|\bpercent(?:age)? of\b"
)
_EXPRESSION = r"(?<![\w.,)])(?:[-(] ?){0,60}(?:\d|\.\d)[\d .+*/%^()-]*"


def calculate(expression: str) -> str:
    """Return the value of `expression`: exact if it has at most 1,000 decimal places, else with 28 digits.

    It may have integers, decimals (`1.5`, `2e-3`), `+ - * / // % ** ^ ( )` and signs, as in Python. `^` is a power, and
    `//` and `%` round towards minus infinity. Thousands separators are refused, because `1,234` is ambiguous. Raises
    ValueError with a message for users. The bounds are 1,000 characters, 50 levels and numbers of 1,000 digits.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"The expression has more than {MAX_LENGTH:,} characters.")
    rest = _tokens(expression.translate(_TYPED_SIGNS))[::-1]
    if not rest:
        raise ValueError("The expression is empty.")
    value = _value(rest, 1, 0)
    if rest:
        raise ValueError(f"Unexpected '{rest[-1]}' in the expression.")
    return _written(value)


def _tokens(text: str) -> list[str]:
    text, tokens, position = text.rstrip(), [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].lstrip()
            raise ValueError(f"Unexpected '{rest[0]}' at position {len(text) - len(rest) + 1} of the expression.")
        tokens.append(match[1])
        position = match.end()
    return tokens


def _value(rest: list[str], lowest: int, depth: int) -> Fraction:
    """Evaluate operators of at least the precedence `lowest`, and remove them from the end of `rest`."""
    if depth > MAX_DEPTH:
        raise ValueError(f"The expression is nested more than {MAX_DEPTH} levels deep.")
    value = _operand(rest, depth)
    while rest and rest[-1] in _OPERATIONS and _OPERATIONS[rest[-1]][0] >= lowest:
        sign = rest.pop()
        precedence, operation = _OPERATIONS[sign]
        # A power is right-associative, and its exponent may have a sign: 2**-3**2 is 2**(-(3**2)).
        right = _value(rest, _POWER if precedence == _POWER else precedence + 1, depth + 1)
        if sign in ("/", "//", "%") and right == 0:
            raise ValueError("Division by zero.")
        value = _bounded(Fraction(operation(value, right)))
    return value


def _operand(rest: list[str], depth: int) -> Fraction:
    if not rest:
        raise ValueError("The expression ends too early.")
    token = rest.pop()
    if token in ("-", "+"):
        value = _value(rest, _UNARY, depth + 1)
        return -value if token == "-" else value
    if token == "(":
        value = _value(rest, 1, depth + 1)
        if not rest or rest.pop() != ")":
            raise ValueError("A ')' is missing in the expression.")
        return value
    if token[0] not in "0123456789.":
        raise ValueError(f"Unexpected '{token}' in the expression.")
    exponent = token.lower().partition("e")[2]
    # Checked before it is a number: 1e999999999 would fill the memory.
    if len(exponent.lstrip("+-0")) > len(str(MAX_DIGITS)) or abs(int(exponent or "0")) > MAX_DIGITS:
        raise ValueError(_TOO_LARGE)
    return _bounded(Fraction(token))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise ValueError("An exponent must be a whole number.")
    if base == 0 and exponent < 0:
        raise ValueError("Division by zero.")
    # Checked before computing: a number of b bits to the e has at least (b - 1) * e bits.
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
    if bits * abs(exponent.numerator) > _LIMIT_BITS:
        raise ValueError(_TOO_LARGE)
    return Fraction(base**exponent.numerator)


# Each with its precedence.
_OPERATIONS: dict[str, tuple[int, Callable[[Fraction, Fraction], Fraction | int]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, operator.truediv),
    "//": (2, operator.floordiv),
    "%": (2, operator.mod),
    "**": (_POWER, _power),
    "^": (_POWER, _power),
}


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) >= _LIMIT or value.denominator >= _LIMIT:
        raise ValueError(_TOO_LARGE)
    return value


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)  # without 1,000 zeros to remove
    if _LIMIT % value.denominator:
        return str(_ROUNDED.divide(Decimal(value.numerator), Decimal(value.denominator)))
    whole, decimals = divmod(abs(value.numerator) * (_LIMIT // value.denominator), _LIMIT)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{decimals:0{MAX_DIGITS}}".rstrip("0").rstrip(".")


def expressions(text: str) -> list[str]:
    """Return the arithmetic in `text` as `calculate` reads it, including `15% of 80` and `3 times 4`."""
    found = [_balanced(match[0].strip().rstrip("+-*/%^(. ")) for match in re.finditer(_EXPRESSION, _in_signs(text))]
    return list(dict.fromkeys(one for one in found if re.search(r"[\d.)] *[+*/%^-]", one)))[:MAX_EXPRESSIONS]


def asks_arithmetic(text: str) -> bool:
    """Return whether `text` asks for a result or is arithmetic alone; `call 555-1234` is neither."""
    return bool(re.search(_ASKS, text, re.I)) or not re.search("[a-z]", _in_signs(text), re.I)


def _in_signs(text: str) -> str:
    text = text.translate(_TYPED_SIGNS)
    for pattern, replacement in _SPOKEN_ARITHMETIC.items():
        text = re.sub(pattern, replacement, text, flags=re.I)
    return text


def _balanced(expression: str) -> str:
    """Remove the brackets of the sentence around the expression: `(what is 2 + 2)`."""
    excess = expression.count(")") - expression.count("(")
    return expression.removesuffix(")" * excess) if excess > 0 else expression.removeprefix("(" * -excess)
