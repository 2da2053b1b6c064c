"""``python -m nicbench`` is the command ``nicbench``."""

import sys

from nicbench.cli.main import main

sys.exit(main())
