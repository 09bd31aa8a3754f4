"""The schema of this kdx is known without a database library."""

import subprocess
import sys


def test_reading_it_imports_no_library():
    code = "import sys, kdx.store.version; print('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
