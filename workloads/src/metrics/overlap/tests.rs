//! The overlap of words against recordings of the evaluations that people compare with.

use capo_core::llm::{CallUsage, Finish};
use serde_json::{Value, json};

use super::super::Scoring;
use super::super::testing::{compile, measure, refused_reference};
use super::*;

/// What `reference.py` recorded.
fn recorded() -> Vec<Value> {
    serde_json::from_str(include_str!("reference.json")).unwrap()
}

fn definition(of_type: &str, more: Value) -> String {
    let mut definition = json!({"type": of_type, "name": "m", "expected": "{{ a }}", "alternatives": "|"});
    let (Value::Object(definition), Value::Object(more)) = (&mut definition, more) else {
        panic!("objects")
    };
    definition.extend(more);
    json!(definition).to_string()
}

#[test]
fn values_are_those_of_the_recorded_evaluations() {
    let rouge = |variant: &str| definition("rouge", json!({"variant": variant}));
    let metrics = [
        ("f1", definition("f1", json!({}))),
        ("rouge1", rouge("rouge1")),
        ("rouge2", rouge("rouge2")),
        ("rougeL", rouge("rougeL")),
    ];
    let cases = recorded();
    assert_eq!(cases.len(), 70);
    for case in cases {
        let references: Vec<&str> = case["references"]
            .as_array()
            .unwrap()
            .iter()
            .map(|reference| reference.as_str().unwrap())
            .collect();
        for (name, definition) in &metrics {
            let found = measure(
                definition,
                case["answer"].as_str().unwrap(),
                &references.join("|"),
            )
            .value;
            let expected = case[name].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-9, "{name} is {found}: {case}");
        }
    }
}

#[test]
fn an_expected_answer_without_words_or_with_too_many_is_refused() {
    let (f1, rouge) = (definition("f1", json!({})), definition("rouge", json!({})));
    for (definition, reference, is_refused) in [
        (&f1, "The", true),
        (&f1, "東京", false),
        (&rouge, "The", false),
        (&rouge, "東京", true),
        (&rouge, "one|", true),
    ] {
        let problem = refused_reference(definition, reference);
        assert_eq!(problem.is_some(), is_refused, "{reference}: {problem:?}");
    }
    let long = "word ".repeat(MOST_EXPECTED + 1);
    let problem = refused_reference(&rouge, &long).unwrap();
    assert!(problem.contains("10001 words"), "{problem}");
}

#[test]
fn a_sequence_is_sought_among_so_many_pairs_of_words_only() {
    let overlap = Overlap {
        form: rouge::words,
        measure: rouge::of_sequence,
        most_pairs: 6,
        alternatives: Some("|".to_owned()),
    };
    let scoring = Scoring::default();
    let measured = |answer: &str| {
        let sample = Sample {
            user: "",
            answer,
            reference: Some("one two|two"),
            finish: Finish::Stop,
            usage: CallUsage::default(),
            scoring: &scoring,
        };
        overlap.measure(&sample).map(|finding| finding.value)
    };
    assert_eq!(measured("one two"), Ok(1.0));
    let problem = measured("one two three").unwrap_err().to_string();
    assert!(
        problem.contains("3 words") && problem.contains("at most 6 pairs"),
        "{problem}"
    );
}

#[test]
fn both_are_objectives_and_can_be_inverted() {
    let inverted = definition("f1", json!({"invert": true}));
    assert_eq!(measure(&inverted, "cat", "cat").value, 0.0);
    let spec = compile(&definition("rouge", json!({}))).unwrap().spec().clone();
    assert_eq!((spec.max, spec.binary), (Some(1.0), false));
    assert!(spec.explanation.contains("same order"), "{}", spec.explanation);
}
