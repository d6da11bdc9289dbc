"""`python -m servetop`."""

import sys

from servetop.cli.entry import main

sys.exit(main())
