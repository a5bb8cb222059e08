"""Loads all of mcverify's own claims when it is imported, for processes that judge them all."""

from mcverify.declare.discover import discover

for _claim in discover():
    _claim.control_cases()  # predictions included, which take a second
