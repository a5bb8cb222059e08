"""What all tests share: how Hypothesis draws."""

import os

from hypothesis import settings

# No deadline: the first call of a function may import scipy. In CI every run tries the same
# examples; at home each run tries new ones.
settings.register_profile("home", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")
