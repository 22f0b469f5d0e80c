//! Word problems: a plain reader that folds the numbers of a text with the operations its words
//! suggest. It is no mathematician; most school problems are beyond it.

use std::ops::Range;

/// What a clause's words suggest to do with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Take that many percent of it.
    PercentOf,
    /// Raise it by that many percent.
    RaisePercent,
    /// Lower it by that many percent.
    LowerPercent,
}

/// One step of a solution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    left: f64,
    operation: Operation,
    right: f64,
    pub(super) result: f64,
}

impl Step {
    /// The step as an equation.
    pub(super) fn equation(&self) -> String {
        let (left, right, result) = (number(self.left), number(self.right), number(self.result));
        match self.operation {
            Operation::Add => format!("{left} + {right} = {result}"),
            Operation::Subtract => format!("{left} - {right} = {result}"),
            Operation::Multiply => format!("{left} * {right} = {result}"),
            Operation::Divide => format!("{left} / {right} = {result}"),
            Operation::PercentOf => format!("{right}% of {left} = {result}"),
            Operation::RaisePercent => format!("{left} raised by {right}% = {result}"),
            Operation::LowerPercent => format!("{left} lowered by {right}% = {result}"),
        }
    }
}

/// The most numbers a word problem holds; a text with more is a list or a table.
const MOST_QUANTITIES: usize = 40;

/// A quantity with the words around it that say what to do with it.
#[derive(Debug, Clone, PartialEq)]
struct Quantity {
    value: f64,
    percent: bool,
    /// Its clause, as a range of the problem's words.
    clause: Range<usize>,
    /// "each", "per", "every" or "apiece" stands close behind.
    per_unit: bool,
}

/// A text with the numbers in it.
struct Problem<'a> {
    words: Vec<&'a str>,
    quantities: Vec<Quantity>,
}

/// Solves a problem: its steps, the last of which holds the answer. `None` when the text holds no
/// two numbers, or more than any word problem has. A reader at a glance (`thorough` is false) looks at the first two numbers only.
///
/// A thorough reader also looks whether the result makes sense, a whole number above 0, and if it
/// does not, reads one of the operations differently.
pub(super) fn solve(problem: &str, thorough: bool) -> Option<Vec<Step>> {
    let lower = problem.to_lowercase();
    let problem = Problem::read(&lower)?;
    let quantities = &problem.quantities[..];
    let question = lower.rsplit(". ").next().unwrap_or_default();
    let taken = if thorough {
        quantities.len()
    } else {
        quantities.len().min(2)
    };
    let suggested: Vec<Operation> = quantities[..taken]
        .windows(2)
        .map(|pair| problem.operation(&pair[0], &pair[1], question))
        .collect();
    if suggested.is_empty() {
        return None;
    }
    let steps = carry_out(quantities, &suggested);
    if !thorough || makes_sense(&steps) {
        return Some(steps);
    }
    let doubted = (0..suggested.len()).rev().find_map(|index| {
        [
            Operation::Multiply,
            Operation::Divide,
            Operation::Subtract,
            Operation::Add,
        ]
        .into_iter()
        .find_map(|other| {
            let mut operations = suggested.clone();
            operations[index] = other;
            Some(carry_out(quantities, &operations)).filter(|steps| makes_sense(steps))
        })
    });
    Some(doubted.unwrap_or(steps))
}

fn makes_sense(steps: &[Step]) -> bool {
    steps
        .last()
        .is_some_and(|step| step.result > 0.0 && step.result.fract().abs() < 1e-9)
}

/// Folds the quantities from the left, one operation between each two.
fn carry_out(quantities: &[Quantity], operations: &[Operation]) -> Vec<Step> {
    let mut total = quantities[0].value;
    let mut steps = Vec::with_capacity(operations.len());
    for (quantity, &operation) in quantities[1..].iter().zip(operations) {
        let right = quantity.value;
        let result = match operation {
            Operation::Add => total + right,
            Operation::Subtract => total - right,
            Operation::Multiply => total * right,
            Operation::Divide if right == 0.0 => total,
            Operation::Divide => total / right,
            Operation::PercentOf => total * right / 100.0,
            Operation::RaisePercent => total * (1.0 + right / 100.0),
            Operation::LowerPercent => total * (1.0 - right / 100.0),
        };
        steps.push(Step {
            left: total,
            operation,
            right,
            result,
        });
        total = result;
    }
    steps
}

impl<'a> Problem<'a> {
    /// Reads a text in lower case. `None` when it holds too many numbers.
    fn read(lower: &'a str) -> Option<Self> {
        let words: Vec<&str> = lower.split_whitespace().collect();
        // A clause ends with a mark, or in front of a word that joins another one.
        let ends_clause = |word: &str| word.ends_with(['.', '?', ';', ',', ':']);
        let joins = |word: &str| matches!(word, "and" | "then" | "but");
        let mut quantities = Vec::new();
        let mut clause = 0..0;
        for (index, word) in words.iter().enumerate() {
            let Some(value) = value(word) else {
                continue;
            };
            if quantities.len() == MOST_QUANTITIES {
                return None;
            }
            if index >= clause.end {
                let start = words[clause.end..index]
                    .iter()
                    .rposition(|word| ends_clause(word) || joins(word))
                    .map_or(clause.end, |at| clause.end + at + 1);
                let rest =
                    (index + 1..words.len()).find(|&end| ends_clause(words[end - 1]) || joins(words[end]));
                clause = start..rest.unwrap_or(words.len());
            }
            let after = &words[index + 1..clause.end];
            let per_unit = after
                .iter()
                .take(6)
                .any(|word| matches!(bare(word), "each" | "per" | "every" | "apiece"));
            quantities.push(Quantity {
                value,
                percent: word.contains('%') || after.first().is_some_and(|word| word.starts_with("percent")),
                clause: clause.clone(),
                per_unit,
            });
        }
        Some(Self { words, quantities })
    }

    /// What to do with a quantity that follows another.
    fn operation(&self, previous: &Quantity, quantity: &Quantity, question: &str) -> Operation {
        let clause = &self.words[quantity.clause.clone()];
        let has = |cues: &[&str]| {
            clause
                .iter()
                .any(|word| cues.iter().any(|cue| bare(word).starts_with(cue)))
        };
        if quantity.percent {
            return if has(&["increase", "more", "raise", "grow", "tip", "tax", "profit"]) {
                Operation::RaisePercent
            } else if has(&["discount", "off", "less", "decrease", "fewer", "reduc"]) {
                Operation::LowerPercent
            } else {
                Operation::PercentOf
            };
        }
        if has(&["twice", "double", "times", "triple"]) {
            Operation::Multiply
        } else if has(&["half", "split", "divide", "share", "equally", "quarter"]) {
            Operation::Divide
        } else if quantity.per_unit || previous.per_unit {
            Operation::Multiply
        } else if has(&LOSING) || (asks_for_the_rest(question) && !has(&GAINING)) {
            Operation::Subtract
        } else {
            Operation::Add
        }
    }
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}

/// Beginnings of words that say that something is taken away.
const LOSING: [&str; 24] = [
    "gave", "give", "eat", "ate", "lose", "lost", "sold", "sell", "spend", "spent", "use", "less", "fewer",
    "left", "takes", "took", "minus", "pay", "paid", "break", "broke", "died", "remove", "donat",
];

/// Beginnings of words that say that something is added.
const GAINING: [&str; 9] = [
    "buy", "bought", "more", "get", "find", "found", "add", "another", "receive",
];

/// Whether a question is about what is left or how far two quantities are apart.
fn asks_for_the_rest(question: &str) -> bool {
    let cues = [
        "left",
        "remain",
        "difference",
        "how many more",
        "how much more",
        "change",
    ];
    cues.iter().any(|cue| question.contains(cue))
}

fn value(word: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 17] = [
        ("two", 2.0),
        ("three", 3.0),
        ("four", 4.0),
        ("five", 5.0),
        ("six", 6.0),
        ("seven", 7.0),
        ("eight", 8.0),
        ("nine", 9.0),
        ("ten", 10.0),
        ("eleven", 11.0),
        ("twelve", 12.0),
        ("dozen", 12.0),
        ("twenty", 20.0),
        ("half", 2.0),
        ("twice", 2.0),
        ("double", 2.0),
        ("triple", 3.0),
    ];
    let bare = bare(word).replace(',', "");
    let bare = bare.as_str();
    if let Some((_, value)) = WORDS.iter().find(|(name, _)| *name == bare) {
        return Some(*value);
    }
    if !bare.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    if let Some((above, below)) = bare.split_once('/') {
        let (above, below): (f64, f64) = (above.parse().ok()?, below.parse().ok()?);
        return (below != 0.0).then_some(above / below);
    }
    bare.parse().ok()
}

/// A number without needless decimals.
pub(super) fn number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    if rounded.fract() == 0.0 {
        format!("{rounded:.0}")
    } else {
        rounded.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(problem: &str, thorough: bool) -> f64 {
        solve(problem, thorough).unwrap().last().unwrap().result
    }

    #[test]
    fn plain_problems_are_solved() {
        assert_eq!(
            answer(
                "Tom has 3 apples and buys 4 more. How many apples does he have?",
                true
            ),
            7.0
        );
        assert_eq!(
            answer("Ann has 12 pens. She gives 5 away. How many are left?", true),
            7.0
        );
        assert_eq!(
            answer(
                "James runs 3 sprints 3 times a week. He runs 60 meters each sprint. How many meters does he run a week?",
                true
            ),
            540.0
        );
        assert_eq!(solve("How are you?", true), None);
    }

    #[test]
    fn a_list_of_numbers_is_no_problem() {
        let list = |count: usize| format!("How much is {}?", vec!["7"; count].join(" plus "));
        assert_eq!(answer(&list(MOST_QUANTITIES), true), 7.0 * MOST_QUANTITIES as f64);
        assert_eq!(solve(&list(MOST_QUANTITIES + 1), true), None);
        assert_eq!(solve(&list(MOST_QUANTITIES + 1), false), None);
    }

    #[test]
    fn the_numbers_of_a_clause_share_its_words() {
        let lower = "tom sold 3 of 9 pens, then 2 more and bought 5";
        let problem = Problem::read(lower).unwrap();
        let clauses: Vec<String> = problem
            .quantities
            .iter()
            .map(|quantity| problem.words[quantity.clause.clone()].join(" "))
            .collect();
        let first = "tom sold 3 of 9 pens,";
        assert_eq!(clauses, [first, first, "2 more", "bought 5"]);
    }

    #[test]
    fn a_glance_misses_the_later_steps() {
        let problem = "Tom has 3 apples, buys 4 more and eats 2. How many are left?";
        assert_eq!(answer(problem, true), 5.0);
        assert_ne!(answer(problem, false), 5.0);
    }
}
