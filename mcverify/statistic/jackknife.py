"""Check a statistic's influence values against what groups of blocks really add to its estimate.

Of n blocks let a group of m count twice, or not at all. An estimate that is a smooth function of
means moves by S/(n + m) and by −S/(n − m), S the sum of the group's influence values, but for a
second order that is the same for both up to m/n: it drops out of their middle, and their
difference shows how large it is. What moves the estimate with any group alike, such as a bias of
order 1/n, is left out by comparing groups with each other.
"""

import math

import numpy as np

from mcverify.arrays import Array
from mcverify.statistic.base import Statistic
from mcverify.statistic.estimate import Basis

GROUPS = 8
TOLERANCE = 0.1  # a standard error that is wrong by a tenth hardly changes a verdict


def wrong_influence(statistic: Statistic, table: Array) -> str:
    """How a statistic's influence contradicts its estimate on a table (blocks, …); "" if not.

    The two may differ by a tenth, and by twice the second order. Nothing is said of fewer than two
    blocks a group, of an estimate that has no first order to speak of or needs all groups, nor of
    a statistic with an interval of its own, or a theorem's, which asks for no influence.

    >>> from dataclasses import replace
    >>> from mcverify.statistic import mean
    >>> table = np.arange(32.0)[:, None] % 5
    >>> wrong_influence(mean, table)
    ''
    >>> wrong_influence(replace(mean, influence=lambda t: (t.mean(), t[:, 0])), table)
    'the influence values of mean have mean 1.91; it must be 0: subtract it'
    """
    calibrated = statistic.interval is None and statistic.rests_on is Basis.CALIBRATED
    if not calibrated or len(table) < 2 * GROUPS:
        return ""
    name = f"the influence values of {statistic.name}"
    value, influence = statistic.influence(table)
    if np.shape(influence) != (len(table),):
        return (f"{name} have shape {np.shape(influence)}; there must be one for each of the "
                f"{len(table)} blocks: return it")
    mean_influence = float(np.mean(influence))
    if abs(mean_influence) > TOLERANCE * np.std(influence) + 1e-9 * abs(value):
        return f"{name} have mean {mean_influence:.3g}; it must be 0: subtract it"
    try:
        declared, twice, left_out = _sums(statistic, table, value, influence)
    except ValueError:
        return ""
    added, second = (twice + left_out) / 2, np.std(twice - left_out)
    allowed = TOLERANCE * np.std(added) + 2 * second + 1e-9 * len(table) * abs(value)
    if second > np.std(added) / 2 or not np.std(declared - added) > allowed:
        return ""
    if 0 < np.std(declared) and np.corrcoef(declared, added)[0, 1] < 0.5:
        return (f"{name} do not go with what groups of blocks add to the estimate; let each be "
                "that of its own block, with its sign")
    unit = math.sqrt(GROUPS / len(table))
    return (f"{name} spread by {unit * np.std(declared):.3g}, but with groups of blocks left out "
            f"the estimate moves as if by {unit * np.std(added):.3g}; let each be what its block "
            "adds to the estimate, times the number of blocks")


def _sums(
    statistic: Statistic, table: Array, value: float, influence: Array
) -> tuple[Array, Array, Array]:
    """For each group: the sum of its influence values, and as seen by counting it twice or not."""
    blocks, sums = len(table), []
    for group in np.array_split(np.arange(blocks), GROUPS):
        more = statistic.influence(np.concatenate([table, table[group]]))[0]
        less = statistic.influence(np.delete(table, group, axis=0))[0]
        sums.append((influence[group].sum(), (blocks + len(group)) * (more - value),
                     (blocks - len(group)) * (value - less)))
    declared, twice, left_out = np.array(sums, dtype=np.float64).T
    return declared, twice, left_out
