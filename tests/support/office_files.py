"""ZIP archives of XML files, written by hand."""

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="p"'
TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(files: dict[str, str]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in files.items():
            written.writestr(name, text)
    return output.getvalue()


def rels(*targets: tuple[str, str, str]) -> str:
    rows = "".join(f'<Relationship Id="{id}" Type="{TYPE}/{kind}" Target="{path}"/>' for id, kind, path in targets)
    return f"<Relationships>{rows}</Relationships>"
