"""`python -m servetop`, without the working directory, which Python puts first on the module path."""

import os  # Python loads both before it adds the working directory
import sys

try:
    _HERE = os.getcwd()
except FileNotFoundError:  # a deleted folder has no modules
    _HERE = ""
if not sys.flags.safe_path and sys.path[0] in ("", _HERE):
    del sys.path[0]

from servetop.cli.entry import main

sys.exit(main())
