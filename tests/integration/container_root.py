"""The files of a container that runs one program of this machine: `python container_root.py PROGRAM > ROOT.tar`.

The program goes to /app, where the image of llama.cpp's makers has its own; the shared libraries that it wants, and a
/tmp, come along.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path


def libraries(program: Path) -> list[Path]:
    """What the program's loader would load, and the loader."""
    reported = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", reported)]


def main(program: Path) -> None:
    """Write the archive to standard output."""
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        archive.add(program.resolve(), f"app/{program.name}")
        for library in libraries(program):
            archive.add(library.resolve(), str(library).lstrip("/"))
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
