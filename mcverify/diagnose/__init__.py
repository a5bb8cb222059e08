"""From arrays of queries and keys of one's own to what they keep of the textbook's assumptions."""

from mcverify.diagnose.population import predicted_variances, score_variance
from mcverify.diagnose.report import diagnose, table
from mcverify.laws.arrays import read_arrays

__all__ = ["diagnose", "predicted_variances", "read_arrays", "score_variance", "table"]
