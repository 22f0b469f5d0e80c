"""Writes fronts.json: the fronts over single examples that PyPI's gepa draws its parents from, as programs come in.

    pip install gepa==0.1.4
    python record.py > fronts.json

Each case has the `values` of its programs, an example each, in the order in which they came in; what they are `scored`
in all, no two alike; and the `fronts` after each of them: how many examples each program of the front leads on.
"""

import json
from importlib.metadata import version

import numpy as np
from gepa.core.state import GEPAState, ValsetEvaluation
from gepa.gepa_utils import remove_dominated_programs


def evaluation(values):
    ids = range(len(values))
    return ValsetEvaluation(dict.fromkeys(ids), dict(zip(ids, values)))


def front(state, scored):
    leaders = remove_dominated_programs(state.get_pareto_front_mapping(), scores=scored)
    leads = {}
    for programs in leaders.values():
        for program in programs:
            leads[program] = leads.get(program, 0) + 1
    return [leads.get(program, 0) for program in range(len(scored))]


def case(values):
    # Of equal means the earlier program is the better one.
    scored = [sum(of) / len(of) - 1e-6 * place for place, of in enumerate(values)]
    state = GEPAState({"prompt": "0"}, evaluation(values[0]))
    fronts = [front(state, scored[:1])]
    for place, of in enumerate(values[1:], 1):
        state.update_state_with_new_program([0], {"prompt": str(place)}, evaluation(of), None, 0)
        fronts.append(front(state, scored[: place + 1]))
    return {"values": values, "scored": scored, "fronts": fronts}


def main():
    drawn = np.random.default_rng(0)
    # The third is off the front until the fourth leads on the examples on which alone the first two did.
    cases = [case([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.4, 0.4], [0.0, 0.0, 0.6, 0.6]])]
    for programs in (2, 5, 9, 14):
        for examples in (1, 4, 12):
            # Few levels, so that there are ties and programs that are equal.
            for levels in (2, 5):
                values = drawn.integers(0, levels, (programs, examples)) / (levels - 1)
                cases.append(case(values.tolist()))
    lines = ",\n".join(json.dumps(case) for case in cases)
    print(f'{{"gepa": "{version("gepa")}", "cases": [\n{lines}\n]}}')


main()
