"""Write the golden set anew: `python -m tests.golden`. Read the difference before you commit it.

`python -m tests.golden standing` writes only the files that take no training, such as the vectors of a new kernel.
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

from tests.golden import produce

if "standing" in sys.argv:
    files = produce.standing()
else:
    with tempfile.TemporaryDirectory() as folder:
        files = produce.everything(Path(folder))
    for path in produce.FOLDER.iterdir():
        if path.is_file() and path.suffix not in (".py", ".yaml"):
            path.unlink()
for name, text in files.items():
    (produce.FOLDER / name).write_text(text)
    print(f"{len(text.encode()):>7,} bytes  {name}")
