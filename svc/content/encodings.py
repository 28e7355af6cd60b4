"""The encodings that the text of a file may have, the most likely first."""

import codecs
import re

# With a byte order mark. UTF-32 comes first, because its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Names that mean another encoding, as in browsers.
_ALIASES = {"iso8859-1": "cp1252", "ascii": "cp1252", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)
# What HTML, XML and CSS say of themselves, in their first bytes.
_DECLARED = re.compile(rb"(?:\bcharset|\bencoding|@charset)\s*=?\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_DECLARED_BYTES = 1_024
_MARKUP = re.compile(r"text/(?:html|xml|css)|application/(?:[\w.-]+\+)?xml|image/svg\+xml", re.IGNORECASE)
# Others, such as `punycode`, are no encodings of files.
_KNOWN = re.compile(
    r"utf-(8|16|32)(-[bl]e)?|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|shift_jis\w*|euc_\w+|gb\w+|big5\w*|iso2022_\w+|hz|johab"
)


def encodings_of(content_type: str, first: bytes) -> list[tuple[str, str]]:
    """Return the encodings to try for a file that begins with the bytes `first`, with the handling of errors of each.

    A byte order mark is safer than a declaration. The last one decodes any bytes, as browsers do.
    """
    marked = next((encoding for mark, encoding in _MARKS.items() if first.startswith(mark)), None)
    declared = _CHARSET.search(content_type)
    names = [declared[1] if declared else None]
    if _MARKUP.match(content_type) and (match := _DECLARED.search(first[:_DECLARED_BYTES])):
        names.append(match[1].decode())
    found = [marked, "utf-8-sig" if first.startswith(codecs.BOM_UTF8) else None, *map(_known, names), "utf-8-sig"]
    return [(encoding, "strict") for encoding in dict.fromkeys(filter(None, found))] + [("cp1252", "replace")]


def _known(name: str | None) -> str | None:
    try:
        encoding = codecs.lookup(name or "").name
    except LookupError:
        return None
    encoding = _ALIASES.get(encoding, encoding)
    return encoding if _KNOWN.fullmatch(encoding) else None
