"""Make the archive of a release: `python -m tests.support.release_archive CHECKOUT FILE.tar.gz`.

Start the service of the checkout, store something of many kinds through its API, and back it up with its own command.
The checkout may be an earlier release, so only what release 1.0.0 had is used here.
"""

import contextlib
import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

PASSWORD = "correct horse battery"
STAYS, GOES = "ada@example.com", "bob@example.com"
PAID = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]}
GOAL = 'tool write_artifact {"name": "made.txt", "content": "by a run"}\n---\nsay done'


@contextlib.contextmanager
def serving(checkout: Path, env: dict[str, str]) -> Iterator[str]:
    """Run the service of the checkout and yield its address."""
    server = subprocess.Popen(
        [sys.executable, "app.py"], cwd=checkout, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        yield next(line.split()[-1] for line in server.stdout if line.startswith("listening on"))
    finally:
        server.terminate()
        server.wait(30)


class Person:
    """A client with the session of a new account."""

    def __init__(self, client: httpx.Client, email: str) -> None:
        self._client = client
        session = self.send("POST", "/auth/signup", {"email": email, "password": PASSWORD, "name": "A person"})
        client.headers["authorization"] = f"Bearer {session['access_token']}"

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.headers.get("content-type") == "application/json" else answer.content

    def fill(self) -> None:
        """Store something of every kind. The account has 10 dollars."""
        self.send("PATCH", "/user/settings", {"default_model": "builtin/assistant"})
        project = self.send("POST", "/projects", {"name": "Trains", "instructions": "Be brief."})["id"]
        for name in ("laptop", "phone"):
            key = self.send("POST", "/user/api-keys", {"name": name})
        provider = {"name": "lab", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-of-a-test", "models": ["m"]}
        self.send("POST", "/user/providers", provider)
        for title in ("Thunderstorms", "Timetables", "Going"):
            conversation = self.send("POST", "/conversations", {"title": title, "project_id": project})["id"]
            for number in range(30):
                text = f"Message {number} of {title}: lightning and thunder, größer than ⚡"
                self.send("POST", f"/conversations/{conversation}/messages", {"role": "user", "content": text})
        self.send("DELETE", f"/conversations/{conversation}")
        self.send("POST", "/v1/chat/completions", PAID)
        self.send("POST", "/v1/agents/run", {"goal": GOAL, "model": "builtin/script", "project_id": project})
        self.send("POST", "/v1/images/generations", {"prompt": "a pine", "size": "64x64"})
        for size in (10, 300_000, 500_000):
            made = self.send("POST", "/artifacts", {"name": f"{size}.txt", "content": "0123456789" * (size // 10)})
        self.send("DELETE", f"/artifacts/{made['id']}")
        self.send("POST", "/support/conversations", {"subject": "Help", "message": "It does not start."})
        with_key = {"authorization": f"Bearer {key['key']}"}
        assert self._client.post("/v1/chat/completions", json=PAID, headers=with_key).is_success


def main(checkout: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        env = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
        env |= {"SVC_DATA_DIR": str(folder / "data"), "SVC_PORT": "0", "SVC_DISCOVER": "0", "PYTHONPATH": str(checkout)}

        def svc(*arguments: str) -> None:
            subprocess.run([sys.executable, "-m", "svc", *arguments], cwd=checkout, env=env, check=True)

        with serving(checkout, env) as address:
            for email in (STAYS, GOES):
                verify = str(folder / "data" / "tls" / "ca.pem")
                with httpx.Client(base_url=address, verify=verify, trust_env=False, timeout=60) as client:
                    person = Person(client, email)
                    svc("credit", email, "10")
                    person.fill()
                    if email == GOES:
                        person.send("DELETE", "/user/me", {"password": PASSWORD})
        svc("backup", str(folder / "backup.tar"))
        target.write_bytes(gzip.compress((folder / "backup.tar").read_bytes(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
