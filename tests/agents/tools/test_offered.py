"""Which tools a caller may use."""

from typing import get_args

from svc.agents.tools.offered import TOOLS, tools_for
from svc.agents.tools.registry import Need


def test_tool_is_offered_only_if_its_need_is_met() -> None:
    def offered(*available: Need) -> set[str]:
        return set(tools_for({need: need in available for need in get_args(Need)}))

    always = {name for name, tool in TOOLS.items() if tool.needs is None}
    assert offered() == always >= {"calculate", "read_artifact"}
    assert (offered("session") - always, offered("fetch") - always) == ({"search_memory"}, {"fetch_url"})
    assert (offered("search") - always, offered("python") - always) == ({"search_web"}, {"run_python"})
    assert (offered("image") - always, offered("speech") - always) == ({"generate_image"}, {"generate_audio"})
