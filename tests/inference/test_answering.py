"""What an answer needs is there in both kinds: one call of a model, and several with tools."""

from svc.agents.tool_answer import ToolAnswer
from svc.inference.answering import Answering
from svc.inference.chat_call import ChatCall


def test_both_kinds_have_each_member() -> None:
    methods = [name for name, value in vars(Answering).items() if callable(value) and name in dir(ChatCall)]
    assert {"stream", "complete", "reserve_in", "end_with", "bill"} <= {*methods}
    for kind in (ChatCall, ToolAnswer):
        assert [name for name in methods if not hasattr(kind, name)] == []
