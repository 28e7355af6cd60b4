"""The text of PDFs: refusals in words, and helper processes that end with their callers."""

import asyncio
import io
import sys
import zlib
from pathlib import Path

import pytest

from svc.builtin.documents import replace_by_text
from svc.builtin.processes import ProcessPool
from svc.errors import ApiError
from tests.support.pdfs import needs_pypdf, of_streams, stream, with_texts
from tests.support.voice import until_children


async def text_of(pdf: bytes, folder: Path, pool: ProcessPool | None = None) -> tuple[str, bool] | None:
    """The text and whether it is cut; None if there is none."""
    pool = pool or ProcessPool("svc.builtin.pdf")
    with (folder / "pdf").open("w+b", buffering=0) as file:
        file.write(pdf)
        try:
            truncated = await replace_by_text(pool, file, "user_1")
        except ApiError as error:
            if error.code != "no_text":
                raise
            return None
        finally:
            await pool.close()
        return (folder / "pdf").read_text(), truncated


def encrypted() -> bytes:
    from pypdf import PdfWriter

    written, writer = io.BytesIO(), PdfWriter(clone_from=io.BytesIO(with_texts(b"one")))
    writer.encrypt("secret", "owner", algorithm="RC4-128")
    writer.write(written)
    return written.getvalue()


# As long as the font that it replaces.
UNMAPPED = b"/Subtype /Type0 /BaseFont /X /Encoding /Identity-H".ljust(67)


@needs_pypdf
async def test_each_reason_for_no_text_has_its_sentence(tmp_path: Path) -> None:
    pool = ProcessPool("svc.builtin.pdf")
    for pdf, sentence in (
        (b"", "This PDF is empty."),
        (b"%PDF-1.7 junk", "This PDF is damaged."),
        (encrypted(), "This PDF is protected by a password."),
        (
            with_texts(b"(one)").replace(b"/Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding", UNMAPPED),
            "The fonts of this PDF do not say",
        ),
        (with_texts(b""), "No text was found in this PDF. If it is a scan"),
    ):
        with (tmp_path / "pdf").open("w+b", buffering=0) as file:
            file.write(pdf)
            with pytest.raises(ApiError, match=sentence):
                await replace_by_text(pool, file, "user_1")
    await pool.close()


@needs_pypdf
async def test_text_replaces_the_pdf_in_the_file(tmp_path: Path) -> None:
    assert await text_of(with_texts(b"Gr\xfc\xdfe", b"", b"two"), tmp_path) == ("Gr\u00fc\u00dfe\n\n\n\ntwo", False)


async def test_pdf_without_the_extra_is_refused_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ApiError, match="extra 'documents'") as refused:
        await text_of(with_texts(b"one"), tmp_path)
    assert refused.value.status == 415


@needs_pypdf
async def test_cancelled_reading_kills_its_process(tmp_path: Path) -> None:
    slow = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * 2_000_000, 9)
    task = asyncio.create_task(text_of(of_streams(stream(slow, b"/Filter /FlateDecode ")), tmp_path))
    await until_children(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_children(0)
