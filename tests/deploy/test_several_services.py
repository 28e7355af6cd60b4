"""The chapter "Several services by domain" of svc/GROWING.md: its commands make a second unit and a second site."""

import re
import subprocess
from pathlib import Path

import pytest

from svc.config import from_environ
from tests.deploy.test_proxies import NAME, SETTINGS
from tests.support.pages import EXAMPLES
from tests.support.server import ROOT

SECOND = "research.example"
TOKEN = "a token of the operator's"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders /etc and /var of a machine with the first service, after the commands of the chapter."""
    root = tmp_path_factory.mktemp("machine")
    for folder in ("etc/svc", "etc/systemd/system", "etc/nginx/sites-enabled"):
        (root / folder).mkdir(parents=True)
    (root / "etc/svc/metrics_token").write_text(f"{TOKEN}\n")
    settings = {**SETTINGS, "SVC_CATALOG": f"{root}/etc/svc/catalog.toml"}
    (root / "etc/svc/settings").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (root / "etc/svc/catalog.toml").write_text('default_model = "builtin/echo"\n')
    (root / "etc/systemd/system/svc.service").write_text((ROOT / "svc/deploy/svc.service").read_text())
    (root / "etc/nginx/sites-enabled/svc").write_text((ROOT / "svc/deploy/nginx.conf").read_text())
    commands = re.sub("^(?:systemctl|SVC_DATA_DIR).*\n", "", EXAMPLES["second-service"], flags=re.MULTILINE)
    # Not the folders in the replacements of sed, which are texts of the unit.
    commands = re.sub(r"(?<![,\w])/etc/(?=svc|systemd|nginx)", f"{root}/etc/", commands)
    done = subprocess.run(["sh", "-e", "-c", commands], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return root


def environment(root: Path, unit: str) -> dict[str, str]:
    """What a unit sets, with its settings and credentials, and its folders below `root`."""
    text = (root / f"etc/systemd/system/{unit}.service").read_text()
    credentials = root / "credentials" / unit
    credentials.mkdir(parents=True)
    for name, path in re.findall(r"^LoadCredential=(\w+):(.*)$", text, re.MULTILINE):
        (credentials / name).write_text(Path(f"{root}{path}").read_text())
    (settings,) = re.findall(r"^EnvironmentFile=-(.*)$", text, re.MULTILINE)
    values = Path(f"{root}{settings}").read_text().splitlines()
    values += re.findall(r"^Environment=(.*)$", text, re.MULTILINE)
    (state,) = re.findall(r"^StateDirectory=(.*)$", text, re.MULTILINE)
    found = dict(value.split("=", 1) for value in values)
    assert found["SVC_DATA_DIR"] == f"%S/{state}"
    return {
        name: value.replace("%S", f"{root}/var/lib").replace("%d", str(credentials)) for name, value in found.items()
    }


def test_second_service_has_its_own_folder_port_and_url_and_the_shared_catalog(machine: Path) -> None:
    configs = [from_environ(environment(machine, unit)) for unit in ("svc", "svc-research")]
    assert [config.base_url for config in configs] == [f"https://{NAME}", f"https://{SECOND}"]
    assert [config.port for config in configs] == [8443, 8444]
    assert configs[0].data_dir != configs[1].data_dir
    assert {config.catalog for config in configs} == {machine / "etc/svc/catalog.toml"}
    assert {config.metrics_token for config in configs} == {TOKEN}
    assert all(config.trusts("127.0.0.1") for config in configs)


def test_second_site_serves_the_second_name_from_the_second_port(machine: Path) -> None:
    first, second = ((machine / "etc/nginx/sites-enabled" / unit).read_text() for unit in ("svc", "svc-research"))
    assert NAME not in second and "8443" not in second
    assert re.findall(r"server_name (\S+);", second) == [SECOND] * 2
    [upstream] = re.findall(r"^upstream (\S+) ", second, re.MULTILINE)
    assert f"upstream {upstream} " not in first, "two of one name are an error of nginx"
    assert f"proxy_pass http://{upstream};" in second and "server 127.0.0.1:8444;" in second
    [variable] = set(re.findall(r"map \$status (\S+)", second))
    assert re.findall(r"return 200 (\S+);", second) == [variable] * 2
