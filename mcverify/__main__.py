"""`python -m mcverify` is the command line."""

import sys

from mcverify.cli import main

sys.exit(main())
