"""NumPy on first use."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from servetop.core.arrays import FloatArray, np
assert "numpy" not in sys.modules
assert type(np).__name__ == "LazyModule"
assert np.zeros(2).sum() == 0.0
assert "numpy" in sys.modules and type(np).__name__ == "module"
assert isinstance(np.zeros(1), FloatArray) and not isinstance([0.0], FloatArray)
assert np.linalg.norm([3.0, 4.0]) == 5.0
try:
    np.no_such_name
except AttributeError:
    print("done")
"""


def test_numpy_is_imported_on_the_first_access_to_an_attribute() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (0, "done\n"), found.stderr
