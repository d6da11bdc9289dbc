"""`python -m servetop`."""

import sys

from servetop.cli.main import main

sys.exit(main())
