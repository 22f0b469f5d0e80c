"""Writes reference.json: binomial tests by scipy, betting test martingales by confseq 0.0.9.

    pip install numpy==1.26.4 scipy==1.13.1 confseq==0.0.9
    python reference.py

Where no wheel of confseq fits, `pip install multiprocess matplotlib` and put the folder `src` of its source archive on
PYTHONPATH: what is used here is Python alone.
"""

import json
import pathlib

import numpy as np
from confseq.betting import betting_mart
from confseq.betting_strategies import lambda_predmix_eb
from scipy import stats

STAKE, ALPHA = 0.75, 0.05


def binomial(events, trials, threshold):
    bound = stats.binomtest(events, trials).proportion_ci(0.90, "exact").high
    return {
        "events": events,
        "trials": trials,
        "threshold": threshold,
        "at_most": stats.binom.cdf(events, trials, threshold),
        "upper": bound,
    }


def betting(values, reserve, mean, alpha):
    bets = lambda x, m: lambda_predmix_eb(x, alpha=alpha, fixed_n=reserve)
    capital = lambda mean: betting_mart(
        values, mean, alpha=alpha, lambdas_fn_positive=bets, theta=0, trunc_scale=STAKE
    )
    # What is bet against at the largest mean that is still believed after the last value.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if capital(middle)[-1] >= 1 / alpha else (middle, high)
    return {
        "values": values.tolist(),
        "reserve": reserve,
        "mean": mean,
        "alpha": alpha,
        "log_capital": np.log(capital(mean)).tolist(),
        "upper": high,
    }


random = np.random.default_rng(0)
cases = {
    "binomial": [
        binomial(events, trials, threshold)
        for trials, threshold in [(1, 0.5), (40, 0.37), (74, 0.37), (300, 0.37), (300, 0.02), (2000, 0.9), (5000, 0.1)]
        for events in sorted({0, 1, int(0.8 * trials * threshold), int(trials * threshold), trials - 1, trials})
    ],
    "betting": [
        betting((random.random(80) < 0.2).astype(float), 100, 0.37, ALPHA),
        betting(np.minimum(random.gamma(2, 0.5, 120), 10) / 10, 300, 0.13, ALPHA),
        betting(random.beta(2, 5, 60), 60, 0.9, 0.01),
        betting(np.full(30, 0.25), 50, 0.3, ALPHA),
        betting(np.zeros(25), 25, 0.05, 0.2),
    ],
}
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(cases))
