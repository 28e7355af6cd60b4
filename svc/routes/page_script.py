"""Two scripts with the modules of the web application's first view: a browser loads them in two requests instead of 45.
One has the texts, in one language, and the other has all else.

Each module becomes a function with its own names, after the modules that it imports. The import map of the page directs
the modules' addresses to these scripts, so that modules which are loaded later share them.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import orjson

SCRIPT = "first.js"
ENTRY = "app/main.js"
TEXTS = "app/texts/en/"  # the folder of one language, which the import map replaces by another
# Modules that are imported by name.
_NAMED = {
    "preact": "vendor/preact/preact.mjs",
    "preact/hooks": "vendor/preact/hooks.mjs",
    "@preact/signals": "vendor/@preact/signals/signals.mjs",
    "@preact/signals-core": "vendor/@preact/signals-core/signals-core.mjs",
    "htm": "vendor/htm/htm.mjs",
    "marked": "vendor/marked/marked.esm.js",
    "katex/": "vendor/katex/",
    "prismjs/": "vendor/prismjs/",
    "mermaid/": "vendor/mermaid/",
}
_IMPORT = re.compile(r'(?:^|(?<=;))import\s*(?:(\w+)|\{([^}]*)\})?\s*(?:from\s*)?"([^"]+)";?', re.MULTILINE)
_EXPORT = re.compile(
    r'(?:^|(?<=[;}]))export\s*(?:\{([^}]*)\}(?:\s*from\s*"([^"]+)")?;?'
    r"|(default )|(?=(?:const|class|(?:async )?function\*?) (\w+)))",
    re.MULTILINE,
)
# Lines that are comments: a tenth of the script on the wire. Those of libraries, which have their licences, stay.
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)
# A thirtieth of the script on the wire. No text but HTML has lines with indentation.
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')


_Import = tuple[str, str, Sequence[str]]  # a module of the application, a module that it imports, and the names


def texts_script(language: str) -> str:
    return f"texts.{language}.js"


class Joined:
    """`script` runs the module `entry` and contains the modules `paths` but for those `outside`, which it imports.

    `sources` are all modules by their paths.
    """

    def __init__(
        self, sources: Mapping[str, str], imports: Sequence[_Import], entry: str, outside: Collection[str] = ()
    ) -> None:
        self._sources, self._outside = sources, outside
        self.paths: list[str] = []  # each after those that it imports
        self._functions: list[str] = []
        self._add(entry)
        self.script = "".join([*self._functions, *self._exports(imports)])
        del self._sources, self._functions  # 2 MB

    def _add(self, path: str) -> None:
        if path in self._outside:
            self._functions.append(f'import * as module{len(self.paths)} from "./{path}";\n')
            self.paths.append(path)
            return
        given: list[str] = []

        def take(match: re.Match[str]) -> str:
            default, names, specifier = match.groups("")
            names = f"default: {default}" if default else names.replace(" as ", ": ")
            return f"const {{{names}}} = {self._variable(specifier, path)};"

        def give(match: re.Match[str]) -> str:
            names, specifier, default, declared = match.groups()
            source = f"{self._variable(specifier, path)}." if specifier else ""
            for name in (declared or names or "whole as default").split(","):
                local, _, other = name.strip().partition(" as ")
                given.append(f"{other or local}: {source}{local}")
            return "const whole = " if default else ""

        module = self._sources[path]
        module = module if path.startswith("vendor/") else _INDENT.sub("", _COMMENT.sub("", module))
        text = _EXPORT.sub(give, _IMPORT.sub(take, module))
        text = _LATER.sub(lambda match: f'import("./{_path_of(match[1], path)}")', text)
        self._functions.append(
            f"const module{len(self.paths)} = (() => {{\n{text}\nreturn {{{', '.join(given)}}};\n}})();\n"
        )
        self.paths.append(path)

    def _variable(self, specifier: str, importer: str) -> str:
        path = _path_of(specifier, importer)
        if path not in self.paths:
            self._add(path)
        return f"module{self.paths.index(path)}"

    def _exports(self, imports: Sequence[_Import]) -> list[str]:
        """Return the exports that the other modules import."""
        shared: dict[str, set[str]] = {path: set() for path in self.paths}
        for importer, path, names in imports:
            if importer not in shared:
                shared.get(path, set()).update(names)
        named = enumerate("" if path in self._outside else ", ".join(sorted(names)) for path, names in shared.items())
        return [f"export const {{{names}}} = module{number};\n" for number, names in named if names]


def _path_of(specifier: str, importer: str) -> str:
    return _NAMED.get(specifier) or posixpath.normpath(posixpath.join(posixpath.dirname(importer), specifier))


class FirstView:
    """The script of the first view and, by language, that of its texts. `sources`: every module by its path."""

    def __init__(self, sources: Mapping[str, str], languages: Iterable[str]) -> None:
        entry = f"{TEXTS}first.js"
        chosen = {name: sources[entry.replace("/en/", f"/{name}/")] for name in languages}
        imports = [
            (path, _path_of(specifier, path), re.findall(r"(\w+)(?: as \w+)?", names))
            for path, source in sources.items()
            if path.startswith("app/")
            for _, names, specifier in _IMPORT.findall(source)
        ]
        texts = {name: Joined({**sources, entry: text}, imports, entry) for name, text in chosen.items()}
        joined = Joined(sources, imports, ENTRY, texts["en"].paths)
        self._paths, self._of_texts = joined.paths, texts["en"].paths
        # The administration is English where it is not translated.
        english = [path for path in sources if path.startswith(TEXTS)]
        self._missing = {
            name: [path for path in english if path.replace("/en/", f"/{name}/") not in sources] for name in languages
        }
        self.scripts = {SCRIPT: joined.script} | {texts_script(name): one.script for name, one in texts.items()}

    def import_map(self, folder: str, language: str) -> bytes:
        """Return the import map of a page in `language`. `folder`: the address of the sources."""
        own = TEXTS.replace("/en/", f"/{language}/")
        contained = dict.fromkeys(self._paths, SCRIPT) | dict.fromkeys(self._of_texts, texts_script(language))
        paths = {folder + path: path for path in contained if path.startswith("app/")}
        paths |= {folder + path.replace(TEXTS, own): path for path in self._of_texts} | {folder + TEXTS: own}
        paths |= {folder + path: path for path in self._missing[language]}
        named = _NAMED | paths
        return orjson.dumps({"imports": {name: folder + contained.get(path, path) for name, path in named.items()}})
