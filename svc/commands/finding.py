"""What `svc doctor` finds: one thing that is right, worth a look or wrong, and what to do about it."""

from dataclasses import dataclass

FINE, LOOK, WRONG = "ok", "look", "wrong"


@dataclass(frozen=True)
class Finding:
    """`grade`: `ok`, `look` (it works, and may surprise) or `wrong`; `about` names the subject, `todo` what to do."""

    grade: str
    about: str
    text: str
    todo: str = ""

    def line(self) -> str:
        """One line for a terminal, whatever a server on the network has put into a text."""
        line = f"{self.grade:6}{self.about}: {self.text}" + (f". {self.todo}" if self.todo else "")
        return "".join(character if character.isprintable() else "\ufffd" for character in line)


def fine(about: str, text: str) -> Finding:
    return Finding(FINE, about, text)


def look(about: str, text: str, todo: str = "") -> Finding:
    return Finding(LOOK, about, text, todo)


def wrong(about: str, text: str, todo: str = "") -> Finding:
    return Finding(WRONG, about, text, todo)
