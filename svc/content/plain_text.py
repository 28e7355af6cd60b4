"""Text without the signs of Markdown, for short quotations."""

import re

# Fences, rules and the rows below headings are whole lines; the other signs begin a line.
_LINES = re.compile(
    r"^[ \t]*(?:(?:```|~~~).*|\|?[ \t]*:?-{3,}[-:| \t]*|(?:[*_-][ \t]*){3,}|={3,})$"
    r"|^[ \t]*(?:#{1,6}[ \t]+|(?:>[ \t]?)+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)+",
    re.MULTILINE,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\](?:\([^()\s]{0,2000}(?:[ \t]+\"[^\"\n]{0,200}\")?\)|\[[^\[\]\n]{0,200}\])")
_CELL = re.compile(r"(?<!\\)\|(?=.*\|)|(?<=[ \t])\|[ \t]*$", re.MULTILINE)
# Two signs always, one where it can begin or end an emphasis: `snake_case` and `2 * 3` stay.
_EMPHASIS = re.compile(r"(?<!\\)(?:\*\*+|__+(?!\w)|(?<!\w)__+|~~|`+|(?<!\w)[*_](?=\S)|(?<=\S)(?<!\\)[*_](?!\w))")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BLANKS = re.compile(r"\s+")


def plain(text: str) -> str:
    """Return the words of a Markdown text in one line."""
    bare = _CELL.sub(" ", _LINK.sub(r"\1", _LINES.sub("", text)))
    return _BLANKS.sub(" ", _ESCAPED.sub(r"\1", _EMPHASIS.sub("", bare))).strip()
