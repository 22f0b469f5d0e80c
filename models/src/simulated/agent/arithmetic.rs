//! Word problems: a plain reader that folds the numbers of a text with the operations its words
//! suggest. It is no mathematician; most school problems are beyond it.

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

/// A quantity with the words around it that say what to do with it.
#[derive(Debug, Clone, PartialEq)]
struct Quantity {
    value: f64,
    percent: bool,
    clause: Vec<String>,
    /// "each", "per", "every" or "a" stands close behind.
    per_unit: bool,
}

/// Solves a problem: its steps, the last of which holds the answer. `None` when the text holds no
/// two numbers. A reader at a glance (`thorough` is false) looks at the first two numbers only.
///
/// A thorough reader also looks whether the result makes sense, a whole number above 0, and if it
/// does not, reads one of the operations differently.
pub(super) fn solve(problem: &str, thorough: bool) -> Option<Vec<Step>> {
    let quantities = quantities(problem);
    let question = problem.to_lowercase();
    let question = question.rsplit(". ").next().unwrap_or_default();
    let taken = if thorough {
        quantities.len()
    } else {
        quantities.len().min(2)
    };
    let suggested: Vec<Operation> = quantities[..taken]
        .windows(2)
        .map(|pair| operation(&pair[0], &pair[1], question))
        .collect();
    if suggested.is_empty() {
        return None;
    }
    let steps = carry_out(&quantities, &suggested);
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
            Some(carry_out(&quantities, &operations)).filter(|steps| makes_sense(steps))
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

fn operation(previous: &Quantity, quantity: &Quantity, question: &str) -> Operation {
    let has = |cues: &[&str]| {
        let starts_so = |word: &String| cues.iter().any(|cue| word.starts_with(cue));
        quantity.clause.iter().any(starts_so)
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

fn quantities(text: &str) -> Vec<Quantity> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    // A clause ends with a mark, or in front of a word that joins another one.
    let ends_clause = |word: &str| word.ends_with(['.', '?', ';', ',', ':']);
    let joins = |word: &str| matches!(word, "and" | "then" | "but");
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(value) = value(word) else {
            continue;
        };
        let start = words[..index]
            .iter()
            .rposition(|word| ends_clause(word) || joins(word))
            .map_or(0, |at| at + 1);
        let mut end = index + 1;
        while end < words.len() && !ends_clause(words[end - 1]) && !joins(words[end]) {
            end += 1;
        }
        let after = &words[index + 1..end];
        let bare = |word: &&str| {
            word.trim_matches(|character: char| !character.is_alphanumeric())
                .to_owned()
        };
        let per_unit = after
            .iter()
            .take(6)
            .any(|word| matches!(bare(word).as_str(), "each" | "per" | "every" | "apiece"));
        found.push(Quantity {
            value,
            percent: word.contains('%') || after.first().is_some_and(|word| word.starts_with("percent")),
            clause: words[start..end].iter().map(bare).collect(),
            per_unit,
        });
    }
    found
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
    let bare = word
        .trim_matches(|character: char| !character.is_alphanumeric())
        .replace(',', "");
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
    fn a_glance_misses_the_later_steps() {
        let problem = "Tom has 3 apples, buys 4 more and eats 2. How many are left?";
        assert_eq!(answer(problem, true), 5.0);
        assert_ne!(answer(problem, false), 5.0);
    }
}
