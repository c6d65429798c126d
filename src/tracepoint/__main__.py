"""`python -m tracepoint`."""

import sys

from tracepoint.cli.main import main

sys.exit(main())
