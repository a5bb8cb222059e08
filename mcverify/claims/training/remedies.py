"""A temperature that is learned with a small character model, and clipping and warm-up, with the scale and without."""

from mcverify import Verdict, claim, grid
from mcverify.statistic import median, proportion

D_K, STEPS, WARM_UP = 64, 200, 100
TEMPERATURE = grid(rate=0.01)
HIGH, LOW = grid(rate=0.03), grid(rate=0.003)


def trained_with(conditions, seeds, progress, rate):
    """What was seen of a small character model of unit-variance q and k under each condition."""
    from mcverify.claims.training.models import CONTEXT, LAYERS, WIDTH
    from mcverify.claims.training.models.training import Condition, Plan, Shape, trained

    shape = Shape(WIDTH, D_K, 2 * WIDTH, LAYERS, CONTEXT)
    return trained(Plan(shape, "unit", STEPS, rate), seeds, [Condition(**each) for each in conditions], progress)


# --- a temperature that all rows share -----------------------------------------------------------

NONE, SQRT = 1.0, D_K**-0.5
LEARNED = {"fixed_none": {"scale": NONE}, "fixed_sqrt": {"scale": SQRT},
           "learned_none": {"scale": NONE, "learned": True}, "learned_sqrt": {"scale": SQRT, "learned": True}}


def with_temperatures(seeds, progress, rate):
    """By the name of the condition the validation loss of each run, and the scale that it ends with."""
    runs = trained_with(LEARNED.values(), seeds, progress, rate)
    return [dict(zip(LEARNED, runs[name].T, strict=True)) for name in ("validation", "scale")]


@claim(proportion, at_least=0.8, over=TEMPERATURE, decides="B16", needs="torch", controls=grid(how="fixed_none"))
def learned_temperature_falls(seeds, progress, rate, how="learned_none"):
    """A scale that is learned with a small character model, one number for all rows and layers, falls from 1 to below .6 in 200 steps of Adam, in at least four of five runs."""
    return with_temperatures(seeds, progress, rate)[1][how] < 0.6


@claim(proportion, at_least=0.5, over=TEMPERATURE, decides="B16", needs="torch",
       controls=grid(better="fixed_sqrt", worse="learned_sqrt"))
def learned_temperature_helps(seeds, progress, rate, better="learned_sqrt", worse="fixed_sqrt"):
    """A learned scale that begins at 1/√d_k gives a small character model a lower validation loss after 200 steps than a fixed one, in most runs."""
    loss, _ = with_temperatures(seeds, progress, rate)
    return loss[better] < loss[worse]


@claim(proportion, at_least=0.5, over=TEMPERATURE, decides="B16", needs="torch",
       controls=grid(better="learned_none", worse="fixed_sqrt"))
def learned_temperature_does_not_replace_the_scale(seeds, progress, rate, better="fixed_sqrt", worse="learned_none"):
    """A learned scale that begins at 1 leaves a small character model with a higher validation loss after 200 steps than a fixed 1/√d_k, in most runs."""
    loss, _ = with_temperatures(seeds, progress, rate)
    return loss[better] < loss[worse]


# --- clipping and warm-up ------------------------------------------------------------------------

REMEDIES = {"none": {"scale": NONE}, "none_clip": {"scale": NONE, "clip": True}, "none_warm": {"scale": NONE, "warm_up": WARM_UP},
            "sqrt": {"scale": SQRT}, "sqrt_warm": {"scale": SQRT, "warm_up": WARM_UP}}


def with_remedies(seeds, progress, rate):
    """By the name of the remedy the validation loss of each run."""
    return dict(zip(REMEDIES, trained_with(REMEDIES.values(), seeds, progress, rate)["validation"].T, strict=True))


@claim(proportion, at_least=0.5, over=HIGH, decides="B11", needs="torch", controls=grid(sign=-1))
def warm_up_helps_at_a_high_rate(seeds, progress, rate, sign=1):
    """At a rate of .03 a warm-up over the first 100 of 200 steps lowers the validation loss of a small character model, with the scale and without it, in most runs."""
    loss = with_remedies(seeds, progress, rate)
    return (sign * (loss["none"] - loss["none_warm"]) > 0) & (sign * (loss["sqrt"] - loss["sqrt_warm"]) > 0)


@claim(proportion, at_least=0.5, over=LOW, decides="B11", needs="torch", expect=Verdict.REFUTED)
def warm_up_helps_at_a_low_rate(seeds, progress, rate):
    """At a rate of .003 a warm-up over the first 100 of 200 steps lowers the validation loss of a small character model with the scale or without it, in most runs."""
    loss = with_remedies(seeds, progress, rate)
    return (loss["none"] > loss["none_warm"]) | (loss["sqrt"] > loss["sqrt_warm"])


@claim(median, between=(-0.05, 0.05), over=LOW, decides="B11", needs="torch", controls=grid(remedy="none_warm"))
def clipping_changes_little(seeds, progress, rate, remedy="none_clip"):
    """At a rate of .003 clipping the norm of all gradients at 1 changes the validation loss of a small character model without the scale by less than .05 nats, in the median."""
    loss = with_remedies(seeds, progress, rate)
    return loss["none"] - loss[remedy]
