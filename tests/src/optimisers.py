"""Has other optimisers' own requests answered by `capo simulate`, and prints what they make of the answers.

Each line of the output is JSON: `tool`, `before` (the prompt that a request was about) and `after` (the prompts that the
tool itself read from the answer). Templates, adapters, parsers and expressions are those of the installed packages.
"""

import ast
import inspect
import json
import re
import sys
import textwrap

import dspy
import openai
from dspy.teleprompt import GEPA, MIPROv2
from gepa.optimize_anything import optimize_anything_reflection_prompt_template as anything
from gepa.strategies.instruction_proposal import InstructionProposalSignature
from promptolution.utils import templates
from promptolution.utils.formatting import extract_from_tag
from sammo.mutators import APO

BASE_URL = sys.argv[1]
# As long as prompts become in a search.
SUPPORT = (
    "You are a customer service agent. Help the customer with their request. Be brief. "
    "Hand over to a colleague of the customer service only in the cases that the policy of the customer service lists, and "
    "say so in one sentence to the customer before it is done. In every case: rely only on facts that the tools returned. "
    "Important: before the customer service changes anything for the customer, say to the customer what will be changed and "
    "wait for a clear yes of the customer. As a rule of thumb, reach the goal with the fewest calls you can. When the "
    "customer is done, finish with a summary of what was done for the customer. Rely on what was already returned instead "
    "of calling the tool again. Retrieve the details from the system rather than asking the customer for them. Remember "
    "that customers come to the customer service from many places, and that the customer service is there for all of them."
)
EVIDENCE = (
    "agent calls: transfer_to_human({})\nThe dialogue was handed to a human without need.\n"
    "The customer was not told that clearance items are not taken back."
)
client = openai.OpenAI(base_url=BASE_URL, api_key="none")


def ask(prompt, system=None):
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    answer = client.chat.completions.create(model="sim-large", messages=messages, temperature=1.0)
    return answer.choices[0].message.content


def report(tool, before, after):
    print(json.dumps({"tool": tool, "before": before, "after": after}), flush=True)


def gepa():
    for tool, template in (("gepa", None), ("gepa optimize_anything", anything)):
        request = InstructionProposalSignature.prompt_renderer(
            {
                "current_instruction_doc": SUPPORT,
                "dataset_with_feedback": [
                    {"Inputs": "cancel it", "Generated Outputs": "Done.", "Feedback": EVIDENCE} for _ in range(3)
                ],
                "prompt_template": template,
            }
        )
        report(tool, SUPPORT, [InstructionProposalSignature.output_extractor(ask(request))["new_instruction"]])


def questions():
    words = ["strawberry", "banana", "committee", "bookkeeper", "mississippi", "raspberry", "parallel", "balloon"]
    return [
        dspy.Example(
            question=f'How many times does the letter "{word[-2]}" occur in "{word}"?',
            answer=str(word.count(word[-2])),
        ).with_inputs("question")
        for word in words
    ]


def right(example, prediction, *_):
    return float(re.findall(r"\d+", prediction.answer)[-1:] == [example.answer])


def dspy_optimisers():
    dspy.configure(
        lm=dspy.LM("openai/sim-small", api_base=BASE_URL, api_key="none", cache=False),
        adapter=dspy.ChatAdapter(use_json_adapter_fallback=False),
    )
    teacher = dspy.LM("openai/sim-large", api_base=BASE_URL, api_key="none", temperature=1.0, cache=False)
    before = "Answer the question."
    program = dspy.Predict(dspy.Signature("question -> answer", before))
    proposed = []

    class Recording(MIPROv2):
        def _propose_instructions(self, *arguments, **named):
            candidates = super()._propose_instructions(*arguments, **named)
            proposed.extend(candidates[0])
            return candidates

    Recording(
        metric=right, prompt_model=teacher, auto=None, num_candidates=6, init_temperature=1.0, verbose=False
    ).compile(
        program,
        trainset=questions()[:4],
        valset=questions()[4:],
        num_trials=3,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        minibatch=False,
    )
    report("dspy.MIPROv2", before, [text for text in proposed if text != before])

    def feedback(example, prediction, *_):
        text = f"The answer was expected to be {example.answer}; it was not worked through step by step."
        return dspy.Prediction(score=right(example, prediction), feedback=text)

    found = GEPA(metric=feedback, reflection_lm=teacher, max_metric_calls=60, track_stats=True).compile(
        program, trainset=questions()[:4], valset=questions()[4:]
    )
    candidates = [c.signature.instructions for c in found.detailed_results.candidates]
    report("dspy.GEPA", before, [text for text in candidates if text != before])


def promptolution():
    def made(name, before, **values):
        request = getattr(templates, name)
        for key, value in values.items():
            request = request.replace(f"<{key}>", value)
        answers = [ask(request, system=templates.DEFAULT_SYS_PROMPT) for _ in range(4)]
        report(f"promptolution {name}", before, extract_from_tag(answers, "<prompt>", "</prompt>"))

    other = "Verify the customer's identity first. Never guess an order."
    task = "Solve the requests of a shop's customers."
    made("CAPO_CROSSOVER_TEMPLATE", SUPPORT, mother=SUPPORT, father=other, task_desc=task)
    made("CAPO_MUTATION_TEMPLATE", SUPPORT, instruction=SUPPORT, task_desc=task)
    made("EVOPROMPT_GA_TEMPLATE", SUPPORT, prompt1=SUPPORT, prompt2=other)
    made("EVOPROMPT_GA_TEMPLATE_TD", SUPPORT, prompt1=SUPPORT, prompt2=other, task_desc=task)
    made("EVOPROMPT_DE_TEMPLATE", SUPPORT, prompt0=SUPPORT, prompt1=other, prompt2="Plan the steps first.")
    made("PROMPT_VARIATION_TEMPLATE", SUPPORT, prev_prompt=SUPPORT)
    scored = f"text:\n{other}\nscore: 12\n\ntext:\n{SUPPORT}\nscore: 40\n\n"
    made("OPRO_TEMPLATE", SUPPORT, instructions=scored, examples="Input: cancel it\nOutput: done")
    made("OPRO_TEMPLATE_TD", SUPPORT, instructions=scored, examples="Input: cancel it\nOutput: done", task_desc=task)
    pairs = "Input: cancel it\nOutput: done"
    made("PROMPT_CREATION_TEMPLATE", "", input_output_pairs=pairs)
    made("PROMPT_CREATION_TEMPLATE_TD", "", input_output_pairs=pairs, task_desc=task)
    several = templates.PROMPT_CREATION_TEMPLATE_FROM_TASK_DESCRIPTION.replace("<task_desc>", task)
    report("promptolution several", "", json.loads(ask(several.replace("<n_prompts>", "3"))))


def protegi():
    """The requests of ProTeGi, read off the package's source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(APO.mutate)))

    def constants(function, argument):
        """The texts given to a function's calls, in the order of the source."""
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function]
        return [call.args[argument].value for call in sorted(calls, key=lambda call: call.lineno)]

    intro, gradient, edit, variation = constants("Template", 0)
    reasons_read, prompts_read = constants("ExtractRegex", 1)

    def fill(template, **values):
        for key, value in values.items():
            template = template.replace("{{{%s}}}" % key, str(value))
        return template

    intro = fill(intro, current_instructions=SUPPORT, errors=EVIDENCE)
    reasons = re.findall(reasons_read, ask(fill(gradient, intro=intro, num_gradients=2)), re.DOTALL)
    report("ProTeGi gradients", SUPPORT, reasons)
    request = fill(edit, intro=intro, gradient=reasons[0], steps_per_gradient=2)
    report("ProTeGi edits", SUPPORT, re.findall(prompts_read, ask(request), re.DOTALL))
    report("ProTeGi variation", SUPPORT, [ask(fill(variation, prompt=SUPPORT))])


for tool in (gepa, dspy_optimisers, promptolution, protegi):
    tool()
