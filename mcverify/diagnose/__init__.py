"""From arrays of queries and keys of one's own to what they keep of the textbook's assumptions."""

from mcverify.diagnose.report import diagnose, table
from mcverify.laws.arrays import read_arrays

__all__ = ["diagnose", "read_arrays", "table"]
