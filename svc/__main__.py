"""`python -m svc`: the operator's commands."""

import sys

from svc.cli import main

sys.exit(main())
