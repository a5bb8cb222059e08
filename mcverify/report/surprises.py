"""What surprises most among the statements, with the numbers that a results folder holds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from mcverify.declare.grid import shown
from mcverify.results.folder import Results

Estimate = tuple[int, str, dict[str, Any]]  # significant digits, claim, settings of a case


class Surprise(NamedTuple):
    """A statement by its id, what it says in short, and what was measured."""

    statement: str
    said: str
    measured: str


def _xavier(digits: int, kind: str) -> Estimate:
    return digits, "initial_score_variance", {"law": f"projected[normal-xavier_uniform_{kind}-512]"}


TWO_KEYS = "two_key_gradient_median"
NORMED = {"law": "layer_norm[normal]"}
# The most surprising one first. A pair of braces in what was measured stands for an estimate.
SURPRISES: tuple[tuple[Surprise, tuple[Estimate, ...]], ...] = (
    (Surprise("A11", "Unscaled, the gradient vanishes.",
              "With 2 keys at d_k = 64 the *median* gradient at q falls from {} to {}, and the "
              "*mean square* at W_Q grows {} times; with 128 keys that at q grows {} times."),
     ((2, TWO_KEYS, {"power": 0.5}), (1, TWO_KEYS, {"power": 0.0}),
      (2, "dead_rows_live_projections", {"projection": "query", "d_k": 64}),
      (2, "unscaled_gradient_square", {"d_k": 64}))),
    (Surprise("B21", "Scaled, the entropy over 128 keys is ln 128 = 4.85.",
              "It is {}: half a nat below that ceiling."),
     ((3, "scaled_entropy", {"d_k": 512, "keys": 128}),)),
    (Surprise("B3", "The variance is d_k by the central limit theorem.",
              "Variances of uncorrelated terms add, at every d_k. A random length that coordinates "
              "share keeps the variance and an excess kurtosis of {} at 64: no normal law."),
     ((2, "common_scale_kurtosis", {"d_k": 64}),)),
    (Surprise("B1", "Under Xavier initialisation q and k have variance 1.",
              "Only for square matrices. One head's own matrix gives scores a variance of {}, a "
              "fused one {}."),
     (_xavier(3, "head"), _xavier(2, "fused"))),
    (Surprise("B8", "Dividing by √d_k whitens the scores.",
              "Keys correlated 0.5 leave scores correlated {}."),
     ((1, "correlated_keys_leave_correlated_scores", {"d_k": 64}),)),
    (Surprise("B17", "LayerNorm of q and k forces variance 1.",
              "Without the scale it leaves {} at d_k = 64, and with it d_k/(d_k − 1): {} at 8."),
     ((2, "layer_norm_variance", NORMED | {"d_k": 64}),
      (2, "layer_norm_forces_unit_variance", NORMED | {"d_k": 8}))),
    (Surprise("B14", "Longer contexts need T = √d_k·√(trained/actual length).",
              "It overshoots: at 8 times the length the entropy has gone from 5.74 nats to {}."),
     ((3, "root_rule", {"rule": "root", "fold": 8.0}),)),
    (Surprise("B15", "The online softmax copes with longer contexts.",
              "It gives the weights of softmax, so it changes no probability."), ()),
    (Surprise("B27", "Softmax inputs above 10 saturate.",
              "(1000, 1000) has weights of {}, and the largest Jacobian there is."),
     ((2, "large_inputs_give_one_hot", {}),)),
    (Surprise("A17", "Trained heads have unit variance, too.",
              "{}, {} and {} in three heads. Their means and covariances predict it for unseen "
              "sentences, to 10 % more often than not."),
     tuple((2, "variance_of_a_trained_head", {"head": f"trained_{head}"})
           for head in ("l0h0", "l5h3", "l0h2"))),
)


def surprises(results: Results) -> Iterator[Surprise]:
    """Those surprises of which the folder holds the numbers, the most surprising one first."""
    for surprise, estimates in SURPRISES:
        numbers = [_measured(results, *each) for each in estimates]
        if all(numbers):
            yield surprise._replace(measured=surprise.measured.format(*numbers))


def _measured(results: Results, digits: int, claim: str, settings: dict[str, Any]) -> str:
    """The estimate of the one case of a claim with these settings; "" if there is no such case."""
    rows = [row for row in results.read(claim)
            if all(row.get(name) == shown(value) for name, value in settings.items())]
    if len(rows) != 1:
        return ""
    rounded = float(f"{float(rows[0]['estimate']):.{digits}g}")
    return f"{rounded:g}"  # 260 and not 2.6e+02
