"""Runs a GEPA program, as docs/simulate.md has it, on a study and prints what came of it.

Arguments: the program, `capo`, the study, its seed, the journal, the score, and the rollouts that it may make. GEPA stops
after the measurement that reaches these less two for each held-out task, on which Capo measures its prompt and the seed prompt.
"""

import json
import signal
import subprocess
import sys

import gepa

PROGRAM, CAPO, STUDY, SEED, JOURNAL, SCORE, ROLLOUTS = sys.argv[1:]
servers = []


def serve(*arguments):
    """Starts `capo` with these arguments and returns the address that it listens on."""
    server = subprocess.Popen([CAPO, *arguments, "--port", "0", "--seed", SEED], stdout=subprocess.PIPE, text=True)
    servers.append(server)
    return server.stdout.readline().removeprefix("listening on ").strip()


optimize = gepa.optimize
# Rollouts made and reflections asked for so far, after every measurement.
trail = [(0, 0)]


def counted(*arguments, reflection_lm, adapter, max_metric_calls, **named):
    """GEPA as the program calls it, but until it has made so many rollouts, and with the seed."""
    reflections = 0
    end = int(ROLLOUTS) - 2 * len(program["study"]["examples"]["evaluate"])
    assert end > 0, "no rollout is left beside the held-out ones: raise --rollouts"

    def reflect(prompt):
        nonlocal reflections
        reflections += 1
        return reflection_lm(prompt)

    def ask(url, body=None):
        answer = asked(url, body)
        if "usage" in answer and "rollouts" in answer:
            trail.append((answer["usage"]["rollouts"], reflections))
        return answer

    asked, program["ask"] = program["ask"], ask
    return optimize(
        *arguments,
        **named,
        adapter=adapter,
        reflection_lm=reflect,
        stop_callbacks=[lambda _: trail[-1][0] >= end],
        seed=int(SEED),
        logger=type("Silent", (), {"log": lambda self, _: None})(),
    )


try:
    sys.argv[1:] = [serve("evaluate", STUDY, "--serve", "--allow-outside", "--journal", JOURNAL), serve("simulate"), SCORE]
    gepa.optimize = counted
    program = {"__name__": "__main__"}
    with open(PROGRAM, encoding="utf-8") as source:
        exec(compile(source.read(), PROGRAM, "exec"), program)
finally:
    for server in servers:
        server.send_signal(signal.SIGINT)
        server.wait()
print(json.dumps({"prompt": program["found"].best_candidate["prompt"], "trail": trail}))
