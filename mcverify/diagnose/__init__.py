"""Hold queries and keys of one's own against every assumption of the textbook."""

from mcverify.diagnose.report import diagnose
from mcverify.diagnose.text import table
from mcverify.laws.arrays import read_arrays

__all__ = ["diagnose", "read_arrays", "table"]
