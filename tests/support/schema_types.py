"""TypeScript types of the interface document: `python -m tests.support.schema_types` prints them for
tests/web/check.
"""

import json
from typing import Any

from tests.support.openapi import DOCUMENT

_NAMES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def type_of(schema: dict[str, Any]) -> str:
    variants = schema.get("anyOf") or schema.get("oneOf")
    kind = schema.get("type")
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if variants:
        return " | ".join(dict.fromkeys(map(type_of, variants)))
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"Array<{type_of(schema.get('items', {}))}>"
    if kind == "object":
        required = schema.get("required", ())
        fields = schema.get("properties", {}).items()
        named = "; ".join(f"{name}{'' if name in required else '?'}: {type_of(value)}" for name, value in fields)
        return f"{{ {named} }}" if named else "Record<string, any>"
    return _NAMES.get(str(kind), "any")


def main() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    print(
        "declare namespace Api {",
        *(f"  type {name} = {type_of(schema)};" for name, schema in schemas.items()),
        "}",
        sep="\n",
    )


if __name__ == "__main__":
    main()
