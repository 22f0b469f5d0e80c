//! Beginnings of a study of one's own: what the answers are or who gives them, and what else to keep an eye on.

use capo_core::llm::Role;
use capo_models::providers::SIMULATED;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::draft::Draft;
use super::form::Form;
use super::metrics::aim_at;
use super::place::Place;

/// What answers are, or who gives them.
struct Template {
    title: &'static str,
    /// The kind of workload.
    kind: &'static str,
    prompt: &'static str,
    /// How an answer is compared with what is expected; an agent of one's own measures that itself.
    compared_by: &'static str,
    /// Whether the message about an example begins with its context.
    has_context: bool,
}

/// The column of contexts, before what is asked.
const CONTEXT: &str = "{{ context }}\n\n";

static TEMPLATES: [Template; 4] = [
    Template {
        title: "Classify",
        kind: "table",
        prompt: "Classify the text. Write nothing but the label.",
        compared_by: "normalized",
        has_context: false,
    },
    Template {
        title: "Extract",
        kind: "table",
        prompt: "Find what is asked for in the text. Write it as it stands there, and nothing else.",
        compared_by: "f1",
        has_context: false,
    },
    Template {
        title: "Answer from context",
        kind: "table",
        prompt: "Answer the question by the context alone. Where the context does not say it, say so.",
        compared_by: "f1",
        has_context: true,
    },
    Template {
        title: "Tool agent over HTTP",
        kind: "external",
        prompt: "Do what you are asked with the tools you have. Look up what you do not know, and say what you did.",
        compared_by: "",
        has_context: false,
    },
];

/// Costs that are often limited: what a button says, the metric, its threshold.
fn costs() -> [(&'static str, Value, f64); 5] {
    [
        (
            "Short answers",
            json!({ "name": "answer_length", "type": "length", "unit": "words" }),
            100.0,
        ),
        (
            "Fast answers",
            json!({ "name": "latency", "type": "latency" }),
            10.0,
        ),
        (
            "Cheap answers",
            json!({ "name": "dollars", "type": "dollars" }),
            0.01,
        ),
        (
            "Few refusals",
            json!({ "name": "refusals", "type": "refusal", "should_refuse": false }),
            0.05,
        ),
        (
            "Polite answers",
            json!({
                "name": "impolite", "type": "judge", "invert": true,
                "rubric": "The answer is polite and to the point: 1. It is not: 0.",
            }),
            0.1,
        ),
    ]
}

impl Template {
    fn take(&self, draft: &mut Draft) {
        draft.take_kind(self.kind);
        // A prompt of somebody's own stays.
        let prompt = draft.study.prompt.text.as_deref();
        if draft.has_usual_prompt() || TEMPLATES.iter().any(|other| prompt == Some(other.prompt)) {
            draft.study.prompt.file = None;
            draft.study.prompt.text = Some(self.prompt.to_owned());
        }
        if self.kind != "table" {
            return;
        }
        // One model does for all roles; one that only plays a role would not.
        let models = &mut draft.study.models;
        models.retain(|role, table| *role == Role::Agent || table["provider"] != SIMULATED);
        aim_at(draft, self.compared_by);
        let message = Place::Workload.text(&draft.study, "user");
        let asked = message.strip_prefix(CONTEXT).unwrap_or(&message);
        let asked = if asked.is_empty() && self.has_context {
            "{{ question }}"
        } else {
            asked
        };
        // A message of somebody's own stays: it is more than a column.
        if asked.starts_with("{{") && asked.find("}}") == Some(asked.len() - 2) {
            let context = if self.has_context { CONTEXT } else { "" };
            Place::Workload.set(&mut draft.study, "user", Some(format!("{context}{asked}").into()));
        }
    }
}

/// Measures a cost, unless one of its name is measured already, and keeps it at or under a threshold. Whether that is new:
/// one that it has already stays.
fn keep(draft: &mut Draft, metric: &Value, threshold: f64) -> bool {
    let name = metric["name"].as_str().unwrap_or_default();
    if let Some(metrics) = draft
        .study
        .workload
        .get_mut("metric")
        .and_then(Value::as_array_mut)
        && metrics.iter().all(|other| other["name"] != name)
    {
        metrics.push(metric.clone());
    }
    let is_new = draft.constraint(name).is_none();
    if is_new {
        draft.constrain(name, threshold);
    }
    is_new
}

/// What a study of one's own begins with.
#[component]
pub(super) fn Templates() -> impl IntoView {
    let form = expect_context::<Form>();
    let button = |template: &'static Template| {
        view! {
            <button type="button" on:click=move |_| form.renew(|draft| template.take(draft))>
                {template.title}
            </button>
        }
    };
    view! {
        <div class="stack close">
            <div class="row" role="group" aria-label="Begin with">
                <span class="lab">"Begin with"</span>
                {TEMPLATES.iter().map(button).collect_view()}
            </div>
            <p class="note">
                "Three steps: a prompt, rows, a model. Each of these sets the seed prompt unless you wrote one, and the first \
                 three how answers are compared. Answer from context puts the column context before what is asked; a tool agent is your own, at \
                 an address."
            </p>
        </div>
    }
}

/// Costs of answers to rows of one's own that are measured and limited with one press.
#[component]
pub(super) fn UsualCosts() -> impl IntoView {
    let form = expect_context::<Form>();
    let is_table = form.memo(|study| Place::Workload.text(study, "kind") == "table");
    let said = RwSignal::new((0_usize, String::new()));
    let button = move |(title, metric, threshold): (&'static str, Value, f64)| {
        let press = move |_| {
            let mut is_new = false;
            form.renew(|draft| is_new = keep(draft, &metric, threshold));
            let words = if is_new {
                format!("{title}: added to the constraints above.")
            } else {
                format!("{title}: this study limits them already, and its threshold stays.")
            };
            said.update(|(presses, said)| (*presses, *said) = (*presses + 1, words));
        };
        view! {
            <button type="button" on:click=press>
                {title}
            </button>
        }
    };
    view! {
        <Show when=move || is_table.get()>
            <div class="row" role="group" aria-label="Usual constraints">
                <span class="lab">"Usual ones"</span>
                {costs().map(button).collect_view()}
            </div>
            <p class="note">
                "Cheap answers needs a model whose price is known, or is stated. Polite answers asks a judge once more \
                 about every answer, which costs calls. "
                // Each press puts another text there: who listens hears the same words again.
                <span role="status">
                    <For
                        each=move || [said.get()]
                        key=|(presses, _)| *presses
                        children=|(_, words)| words
                    />
                </span>
            </p>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use capo_core::metric::Direction;

    use super::*;
    use crate::pages::study::measured::Measured;
    use crate::studies::simulated_beyond_their_world;

    #[test]
    fn every_usual_cost_is_measured_as_one_and_limited_once() {
        let mut draft = Draft::new().unwrap();
        draft.take_kind("table");
        for (title, metric, threshold) in costs() {
            assert!(keep(&mut draft, &metric, threshold), "{title}");
            assert!(!keep(&mut draft, &metric, threshold), "{title}");
            let measured = Measured::of(&draft.study.workload, &draft.files, 0);
            let name = metric["name"].as_str().unwrap();
            let found = measured.metric(name).map(|metric| metric.direction);
            assert_eq!(found, Some(Direction::Cost), "{title}");
        }
        assert_eq!(draft.study.constraints.len(), costs().len());
    }

    #[test]
    fn a_template_leaves_a_prompt_of_one_s_own() {
        let mut draft = Draft::new().unwrap();
        for template in TEMPLATES.iter().rev() {
            template.take(&mut draft);
            assert_eq!(draft.study.prompt.text.as_deref(), Some(template.prompt));
            assert_eq!(draft.kind(), template.kind);
            if template.kind == "external" {
                continue;
            }
            assert_eq!(draft.study.workload["metric"][0]["type"], template.compared_by);
            assert_eq!(draft.study.workload["metric"][0]["name"], "correct");
        }
        draft.study.prompt.text = Some("Mine.".into());
        TEMPLATES[0].take(&mut draft);
        assert_eq!(draft.study.prompt.text.as_deref(), Some("Mine."));
    }

    #[test]
    fn who_is_still_simulated_for_an_agent_of_one_s_own_is_told() {
        let mut draft = Draft::new().unwrap();
        let told = |draft: &Draft, role| {
            simulated_beyond_their_world(&draft.study, role, &[Role::Critic, Role::Rewriter])
        };
        assert_eq!(told(&draft, Role::Rewriter), []);
        for kind in ["tau2", "external"] {
            draft.take_kind(kind);
            assert_eq!(
                told(&draft, Role::Rewriter),
                [Role::Critic, Role::Rewriter],
                "{kind}"
            );
        }
        TEMPLATES[3].take(&mut draft);
        let real = json!({ "provider": "openai", "model": "m" });
        draft.study.models.insert(Role::Rewriter, real);
        assert_eq!(told(&draft, Role::Rewriter), []);
        // The agent's model does for all, but not for a role that has its own.
        draft.study.models.shift_remove(&Role::Rewriter);
        assert_eq!(told(&draft, Role::Agent), [Role::Critic, Role::Rewriter]);
    }

    #[test]
    fn a_template_compares_by_the_objective_and_adds_no_more_than_the_context() {
        let mut draft = Draft::new().unwrap();
        draft.take_kind("table");
        let [(_, length, threshold), ..] = costs();
        keep(&mut draft, &length, threshold);
        draft.study.workload["metric"].as_array_mut().unwrap().reverse();
        for (before, after) in [
            ("{{ input }}", ["{{ input }}", "{{ context }}\n\n{{ input }}"]),
            ("Now: {{ a }} {{ b }}", ["Now: {{ a }} {{ b }}"; 2]),
        ] {
            Place::Workload.set(&mut draft.study, "user", Some(before.into()));
            for place in [2, 0, 2, 1] {
                TEMPLATES[place].take(&mut draft);
                let message = Place::Workload.text(&draft.study, "user");
                assert_eq!(message, after[usize::from(TEMPLATES[place].has_context)]);
            }
        }
        let metrics = &draft.study.workload["metric"];
        assert_eq!(
            (&metrics[0]["type"], &metrics[1]["type"]),
            (&json!("length"), &json!("f1"))
        );
    }
}
