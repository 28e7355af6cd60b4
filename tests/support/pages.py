"""The examples of README.md, svc/OPERATING.md, svc/GROWING.md and svc/deploy/README.md, for the tests that run them."""

import re

from tests.support.server import ROOT

README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "svc" / "OPERATING.md").read_text()
DEPLOYMENT = "".join((ROOT / "svc" / "deploy" / name).read_text() for name in ("README.md", "browsers.md"))
GROWING = (ROOT / "svc" / "GROWING.md").read_text()
# Each follows a line `<!-- its name -->`.
_PAGES = README + REFERENCE + GROWING + DEPLOYMENT
EXAMPLES = dict(re.findall(r"^<!-- ([\w-]+) -->\n```\w+\n(.*?)^```$", _PAGES, re.MULTILINE | re.DOTALL))
