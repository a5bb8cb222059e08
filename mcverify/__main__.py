"""`python -m mcverify` is the command line."""

import sys

from mcverify.cli.main import main

sys.exit(main())
