"""The libraries of the web application, byte for byte as npm has them: `python -m tests.support.vendor` fetches them
again.

Each stands in svc/static/vendor/<name>/ with its licence, axe-core (for tests alone) in tests/vendor/. `vendor.json`
beside them names each one's version, licence and the SHA-256 of its files. To take a newer version, change it here and
run the command.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "svc" / "static" / "vendor"
TESTS = ROOT / "tests" / "vendor"
MANIFEST = "vendor.json"


@dataclass(frozen=True)
class Package:
    """A package of npm's: `files` are those that the page loads, by the path in the package."""

    name: str
    version: str
    files: tuple[str, ...]
    folder: Path = PAGE


_LANGUAGES = """
bash c clike cpp csharp css diff docker go graphql ini java javascript json jsx kotlin lua makefile markdown markup
markup-templating php powershell python r ruby rust sql swift toml tsx typescript yaml
"""
PACKAGES = (
    Package("preact", "11.2.0", ("dist/preact.mjs", "hooks/dist/hooks.mjs")),
    Package("htm", "3.1.1", ("dist/htm.mjs",)),
    Package("@preact/signals", "2.11.4", ("dist/signals.mjs",)),
    Package("@preact/signals-core", "1.14.5", ("dist/signals-core.mjs",)),
    Package("marked", "18.2.1", ("lib/marked.esm.js",)),
    Package("prismjs", "1.30.0", tuple(f"components/prism-{name}.min.js" for name in ("core", *_LANGUAGES.split()))),
    Package("katex", "0.19.1", ("dist/katex.min.js",)),
    Package("@fontsource/noto-sans-math", "5.3.0", ("files/noto-sans-math-latin-400-normal.woff2",)),
    Package("mermaid", "11.17.2", ("dist/mermaid.min.js",)),
    Package("axe-core", "4.14.1", ("axe.min.js",), TESTS),
)


def renew(package: Package) -> dict[str, Any]:
    """Fetches a package with npm, puts its files into place, and gives what the manifest says of it."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}", "--pack-destination", folder]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        archive = next(Path(folder).glob("*.tgz")).read_bytes()
    place = package.folder / package.name
    place.mkdir(parents=True, exist_ok=True)
    hashes = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        licence = next(
            name
            for name in tar.getnames()
            if name.lower().split("/")[1:2] in (["license"], ["license.md"], ["license.txt"])
        )
        about = json.loads(_read(tar, "package/package.json"))
        for name, target in [(f"package/{file}", Path(file).name) for file in package.files] + [(licence, "LICENSE")]:
            content = _read(tar, name)
            (place / target).write_bytes(content)
            hashes[target] = hashlib.sha256(content).hexdigest()
    return {"name": package.name, "version": about["version"], "licence": about["license"], "sha256": hashes}


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None, name
    return member.read()


def main() -> None:
    for folder in (PAGE, TESTS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        facts = [renew(package) for package in PACKAGES if package.folder == folder]
        (folder / MANIFEST).write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
