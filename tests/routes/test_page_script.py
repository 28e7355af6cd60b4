"""The script with the first view's modules: whole, in the right order, and shared with the modules that are loaded
later.
"""

import re
from typing import Any

import orjson

from svc.routes.pages import files, release
from tests.conftest import Service

ADDRESS = f"/static/{release()}/first.js"
IMPORTS = re.compile(r'^import (?:\{([^}]*)\} from )?"(\.[^"]+)"', re.MULTILINE)


async def import_map(service: Service) -> dict[str, Any]:
    page = (await service.client.get("/")).text
    (found,) = re.findall(r'<script type="importmap">(.*?)</script>', page)
    imports: dict[str, Any] = orjson.loads(found)["imports"]
    return imports


async def test_first_script_needs_no_other_module(service: Service) -> None:
    script = (await service.client.get(ADDRESS)).text
    assert not re.search(r"^import\b|;import\{|from\"", script, re.MULTILINE)
    assert len(re.findall(r"^const module\d+ =", script, re.MULTILINE)) > 30
    assert f'src="{ADDRESS}"' in (await service.client.get("/")).text


async def test_modules_of_the_first_script_are_loaded_from_nowhere_else(service: Service) -> None:
    imports = await import_map(service)
    joined = {name for name, address in imports.items() if address == ADDRESS}
    assert {"preact", "marked", f"/static/{release()}/app/api.js", f"/static/{release()}/app/views/chat.js"} <= joined
    for name in imports.keys() - joined:
        assert imports[name].startswith(f"/static/{release()}/vendor/"), name
    for name in joined:
        if name.startswith("/"):
            for _, imported in IMPORTS.findall((await service.client.get(name)).text):
                assert str(service.client.base_url.join(f"{name}/../{imported}").path) in joined


async def test_first_script_exports_what_later_modules_import_from_it(service: Service) -> None:
    joined = {name for name, address in (await import_map(service)).items() if address == ADDRESS}
    script = (await service.client.get(ADDRESS)).text
    exported = [
        name for names in re.findall(r"^export const \{(.*)\} =", script, re.MULTILINE) for name in names.split(", ")
    ]
    assert len(exported) == len(set(exported)) > 40
    for path, file in files().items():
        if path.startswith("app/views/") and f"/static/{release()}/{path}" not in joined:
            for names, imported in IMPORTS.findall(file.content.decode()):
                if str(service.client.base_url.join(f"/static/{release()}/{path}/../{imported}").path) in joined:
                    assert {name.split()[0] for name in names.split(",") if name.strip()} <= set(exported), (
                        path,
                        imported,
                    )
