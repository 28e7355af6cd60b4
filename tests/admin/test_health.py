"""What can be checked at once: an error of a check is a finding. The checks themselves:
tests/commands/test_doctor_machine.py.
"""

import dataclasses
from pathlib import Path

from svc.admin.health import findings
from svc.config import Config


def test_unreadable_certificate_is_a_finding(config: Config, tmp_path: Path) -> None:
    broken = dataclasses.replace(config, tls="files", tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
    for path in (broken.tls_cert, broken.tls_key):
        assert path is not None
        path.write_text("no certificate")
    first = findings(broken)[0]
    assert (first.grade, first.about) == ("wrong", "certificate") and first.text
