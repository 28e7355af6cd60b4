"""The message with the files of a project. tests/routes/test_chat_files.py has its use in chats and runs."""

from svc.content.file_search import FoundPassage
from svc.content.given_files import GivenFiles, fit_whole
from svc.content.project_files import ReadyText

PASSAGES = [
    FoundPassage("art_1", "a.pdf", 1, 1, 3, "first"),
    FoundPassage("art_1", "a.pdf", 2, 4, 9, "second"),
    FoundPassage("art_2", "b.md", None, 1, 1, "third"),
]


def test_passages_have_their_number_page_and_lines_and_each_file_its_name_once() -> None:
    (message,) = GivenFiles(PASSAGES, whole=True).among([])
    head, *blocks = message["content"].split("\n\n")
    assert message["role"] == "user" and head.split("\n")[0] == "Files of the project, as data:"
    assert blocks == [
        "File: a.pdf",
        "[1] page 1, lines 1 to 3\nfirst",
        "[2] page 2, lines 4 to 9\nsecond",
        "File: b.md",
        "[3] lines 1 to 1\nthird",
    ]
    assert [one["number"] for one in GivenFiles(PASSAGES, whole=True).sources] == [1, 2, 3]


def test_whole_files_come_before_the_first_message_and_passages_before_the_last_question() -> None:
    roles = ["system", "developer", "user", "assistant", "user", "assistant", "tool"]
    messages = [{"role": role, "content": str(place)} for place, role in enumerate(roles)]
    whole = GivenFiles(PASSAGES, whole=True).among(messages)
    assert whole[:2] + whole[3:] == messages and whole[2]["content"].startswith("Files")
    best = GivenFiles(PASSAGES, whole=False).among(messages)
    assert best[:4] + best[5:] == messages and best[4]["content"].startswith("Files")
    assert GivenFiles([], whole=False).among(messages) is messages


def test_files_without_a_ready_text_do_not_fit_whole() -> None:
    assert [fit_whole(ReadyText("p", size), 4) for size in (0, 1, 3, 4)] == [False, True, True, False]
