#!/usr/bin/env python3
"""An agent for Capo as a command: one JSON request on standard input, one JSON
response on standard output. What you print for yourself goes to standard error.

Put your own agent in place of `run_agent`; the rest is what Capo needs.
"""

import json
import random
import sys


def run_agent(prompt: str, question: str, rng: random.Random) -> str:
    """Stands for your agent: adds up a bill. Told to check, it seldom forgets an
    amount; told to be brief, it says no more than the sum."""
    careful = "check" in prompt.lower()
    brief = "brief" in prompt.lower()
    amounts = [int(word) for word in question.split() if word.isdigit()]
    if amounts and rng.random() < (0.1 if careful else 0.5):
        amounts.pop()
    total = str(sum(amounts))
    if brief:
        return total
    steps = " + ".join(str(amount) for amount in amounts)
    checked = " I checked it twice." if careful else ""
    return f"Let me add up what was bought: {steps} = {total}.{checked} You owe {total}"


def roll_out(request: dict) -> dict:
    """Runs one example under one prompt and measures what came of it."""
    if request["protocol"] != 1:
        raise SystemExit(f"this agent speaks protocol 1, not {request['protocol']}")
    question, expected = request["example"]["question"], str(request["example"]["total"])
    # The seed is the same for every prompt: prompts are compared on the same luck.
    rng = random.Random(request["seed"])
    answer = run_agent(request["prompt"], question, rng)
    correct = answer.split()[-1] == expected
    return {
        "protocol": 1,
        "measurements": {"correct": float(correct), "words": float(len(answer.split()))},
        "messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ],
        "outcome": "" if correct else f"The sum is {expected}.",
        "usage": {"calls": 0, "usd": 0.0},
    }


if __name__ == "__main__":
    json.dump(roll_out(json.load(sys.stdin)), sys.stdout)
