"""A temperature that is learned with a small character model, and clipping and warm-up, with the scale and without."""

from mcverify import Verdict, claim, grid
from mcverify.claims.training.models import CONTEXT, SMALL_MODEL
from mcverify.statistic import median, proportion

TEMPERATURE = grid(model=SMALL_MODEL, d_k=64, rate=0.01)
HIGH, LOW = (grid(model=SMALL_MODEL, d_k=64, rate=rate, warm_up=100) for rate in (0.03, 0.003))


def trained_with(conditions, seeds, progress, model, d_k, rate):
    """What was seen of a small character model of unit-variance q and k under each condition."""
    from mcverify.claims.training.models.training import Condition, Plan, trained
    from mcverify.claims.training.models.transformer import Shape

    shape = Shape(model.width, d_k, 2 * model.width, model.layers, CONTEXT)
    return trained(Plan(shape, "unit", model.steps, rate), seeds, [Condition(*each) for each in conditions], progress)


# --- a temperature that all rows share -----------------------------------------------------------



def with_temperatures(seeds, progress, model, d_k, rate):
    """By the name of the condition the validation loss of each run, and the scale that it ends with."""
    conditions = {f"{how}_{name}": (scale, False, 0, how == "learned") for how in ("fixed", "learned")
                  for name, scale in (("none", 1.0), ("sqrt", d_k**-0.5))}
    runs = trained_with(conditions.values(), seeds, progress, model, d_k, rate)
    return [dict(zip(conditions, runs[name].T, strict=True)) for name in ("validation", "scale")]


@claim(proportion, at_least=0.8, over=TEMPERATURE, decides="B16", needs="torch", controls=grid(how="fixed_none"))
def learned_temperature_falls(seeds, progress, model, d_k, rate, how="learned_none"):
    """A scale that is learned with a small character model, one number for all rows and layers, falls from 1 to below .6 in 200 steps of Adam, in at least four of five runs."""
    return with_temperatures(seeds, progress, model, d_k, rate)[1][how] < 0.6


@claim(proportion, at_least=0.5, over=TEMPERATURE, decides="B16", needs="torch",
       controls=grid(better="fixed_sqrt", worse="learned_sqrt"))
def learned_temperature_helps(seeds, progress, model, d_k, rate, better="learned_sqrt", worse="fixed_sqrt"):
    """A learned scale that begins at 1/√d_k gives a small character model a lower validation loss after 200 steps than a fixed one, in most runs."""
    loss, _ = with_temperatures(seeds, progress, model, d_k, rate)
    return loss[better] < loss[worse]


@claim(proportion, at_least=0.5, over=TEMPERATURE, decides="B16", needs="torch",
       controls=grid(better="learned_none", worse="fixed_sqrt"))
def learned_temperature_does_not_replace_the_scale(seeds, progress, model, d_k, rate, better="fixed_sqrt", worse="learned_none"):
    """A learned scale that begins at 1 leaves a small character model with a higher validation loss after 200 steps than a fixed 1/√d_k, in most runs."""
    loss, _ = with_temperatures(seeds, progress, model, d_k, rate)
    return loss[better] < loss[worse]


# --- clipping and warm-up ------------------------------------------------------------------------


def with_remedies(seeds, progress, model, d_k, rate, warm_up):
    """By the name of the remedy the validation loss of each run."""
    conditions = {"none": (1.0,), "none_clip": (1.0, True), "none_warm": (1.0, False, warm_up),
                  "sqrt": (d_k**-0.5,), "sqrt_warm": (d_k**-0.5, False, warm_up)}
    runs = trained_with(conditions.values(), seeds, progress, model, d_k, rate)
    return dict(zip(conditions, runs["validation"].T, strict=True))


@claim(proportion, at_least=0.5, over=HIGH, decides="B11", needs="torch", controls=grid(sign=-1))
def warm_up_helps_at_a_high_rate(seeds, progress, model, d_k, rate, warm_up, sign=1):
    """At a rate of .03 a warm-up over the first 100 of 200 steps lowers the validation loss of a small character model, with the scale and without it, in most runs."""
    loss = with_remedies(seeds, progress, model, d_k, rate, warm_up)
    return (sign * (loss["none"] - loss["none_warm"]) > 0) & (sign * (loss["sqrt"] - loss["sqrt_warm"]) > 0)


@claim(proportion, at_least=0.5, over=LOW, decides="B11", needs="torch", expect=Verdict.REFUTED)
def warm_up_helps_at_a_low_rate(seeds, progress, model, d_k, rate, warm_up):
    """At a rate of .003 a warm-up over the first 100 of 200 steps lowers the validation loss of a small character model with the scale or without it, in most runs."""
    loss = with_remedies(seeds, progress, model, d_k, rate, warm_up)
    return (loss["none"] > loss["none_warm"]) | (loss["sqrt"] > loss["sqrt_warm"])


@claim(median, between=(-0.05, 0.05), over=LOW, decides="B11", needs="torch", controls=grid(remedy="none_warm"))
def clipping_changes_little(seeds, progress, model, d_k, rate, warm_up, remedy="none_clip"):
    """At a rate of .003 clipping the norm of all gradients at 1 changes the validation loss of a small character model without the scale by less than .05 nats, in the median."""
    loss = with_remedies(seeds, progress, model, d_k, rate, warm_up)
    return loss["none"] - loss[remedy]
