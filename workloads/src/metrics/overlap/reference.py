"""Writes reference.json: F1 of words by the evaluation of SQuAD in transformers, ROUGE by Google's rouge_score.

    pip install rouge-score==0.1.2 transformers==4.57.1
    python reference.py
"""

import json
import pathlib
import random

from rouge_score.rouge_scorer import RougeScorer
from transformers.data.metrics.squad_metrics import compute_f1

SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
WORDS = "the a an cat cats sat on mat. Mat, 12 12th U.S. don't well-known — Straße İstanbul naïve 42% _x_ running".split()


def case(answer, references):
    rouge = SCORER.score_multi(references, answer)
    return {
        "answer": answer,
        "references": references,
        "f1": max(compute_f1(reference, answer) for reference in references),
        **{name: score.fmeasure for name, score in rouge.items()},
    }


random.seed(0)
text = lambda: " ".join(random.choices(WORDS, k=random.randint(1, 25)))
cases = [
    case("", ["the cat sat"]),
    case("The, a; an.", ["the cat sat"]),
    case("cat", ["cat", "cats"]),
    case("It is the CAT’s mat", ["the cat's mat"]),
    case("cat cat cat", ["cat sat cat"]),
    case("sat the cat", ["the cat sat"]),
    case("the\u00a0cat\u2003sat\u001fon\nmat", ["the cat sat on mat"]),
    case("a\u0301 la carte", ["a la carte"]),
    case("\u212aelvin theatre anthem", ["kelvin the anthem"]),
    case("Nix mit 東京 7", ["東京 7 nix"]),
] + [case(text(), [text() + " cat" for _ in range(random.randint(1, 3))]) for _ in range(60)]
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(cases))
