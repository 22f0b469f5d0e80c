"""Writes pymoo.json: fronts and crowding distances of small sets of points, as PyPI's pymoo has them.

    pip install pymoo==0.6.2
    python record.py > pymoo.json

Each case has `values` to be maximised, the `front` of each point, from 0, and its `crowding` distance among the points
of its front; null stands for infinity.
"""

import json
from importlib.metadata import version

import numpy as np
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting


def case(values):
    costs = -values
    front = [0] * len(values)
    crowding = [0.0] * len(values)
    for number, members in enumerate(NonDominatedSorting().do(costs)):
        distances = get_crowding_function("cd").do(costs[members])
        for member, distance in zip(members.tolist(), distances.tolist()):
            front[member] = number
            crowding[member] = None if np.isinf(distance) else distance
    return {"values": values.tolist(), "front": front, "crowding": crowding}


def main():
    drawn = np.random.default_rng(0)
    cases = []
    for objectives in (1, 2, 3, 4):
        for points in (1, 2, 5, 9, 14):
            # Few levels, so that there are ties and points that are equal.
            for levels in (3, 16):
                values = drawn.integers(0, levels, (points, objectives)) / levels
                cases.append(case(values))
    lines = ",\n".join(json.dumps(case) for case in cases)
    print(f'{{"pymoo": "{version("pymoo")}", "cases": [\n{lines}\n]}}')


main()
