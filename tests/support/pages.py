"""The examples of README.md and svc/README.md, as they stand there, for the tests that run them."""

import re

from tests.support.server import ROOT

README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "svc" / "README.md").read_text()
# Each follows a line `<!-- its name -->`.
EXAMPLES = dict(re.findall(r"^<!-- ([\w-]+) -->\n```\w+\n(.*?)^```$", README + REFERENCE, re.MULTILINE | re.DOTALL))
