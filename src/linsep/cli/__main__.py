"""``python -m linsep.cli``."""

import sys

from linsep.cli import main

sys.exit(main())
