//! Two prompts example by example, and the held-out rows for taking away.

use std::path::Path;

use capo_browser::Browser;
use capo_tests::journal::{events, of_kind};
use capo_tests::program::{command, run};
use capo_tests::study::{KEY, Study};
use serde_json::{Value, json};

use super::report::ended;
use super::{SECRET, STORED, journal, page, set_up};

/// What is read off the answers that are open: of both sides the name, the text, the words that only it has, and how far down
/// it stands.
const ANSWERS: &str = "return [...document.querySelectorAll('.answers .answer')].map((one) => {
        const text = one.querySelector('.prompt');
        const words = (tag) => [...text.querySelectorAll(tag)].map((part) => part.textContent).join('');
        return {
            name: one.querySelector('h4').innerText, text: text.textContent, taken: words('del'), added: words('ins'),
            top: one.getBoundingClientRect().y,
        };
    })";

/// The line of the prompt that a run returned, and that of the one that it started from.
fn best_and_seed(lines: &[Value]) -> [&Value; 2] {
    let best = &of_kind(lines, "finished").last().unwrap()["best"];
    let candidates = of_kind(lines, "candidate");
    let found = |is_it: &dyn Fn(&Value) -> bool| *candidates.iter().find(|one| is_it(one)).unwrap();
    [
        found(&|one| one["id"] == *best),
        found(&|one| one["origin"] == "seed"),
    ]
}

/// The held-out rollouts of a prompt, in the order of their examples.
fn held_out(lines: &[Value], prompt: &Value) -> Vec<Value> {
    let rollouts = of_kind(lines, "rollout").into_iter();
    let own =
        rollouts.filter(|rollout| rollout["candidate"] == prompt["id"] && rollout["split"] == "evaluate");
    let mut own: Vec<Value> = own.cloned().collect();
    own.sort_by_key(|rollout| rollout["example"].to_string());
    own
}

fn answer(rollout: &Value) -> &str {
    let messages = rollout["trace"]["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().trim()
}

/// Opens a journal, and returns the id of the run that it has become.
async fn keep(browser: &Browser, journal: &Path) -> String {
    browser.go("/runs").await;
    browser.choose("Journals to open", journal).await;
    browser.until_shown("Finished.").await;
    let id = browser.js("return location.pathname.split('/')[2]").await;
    id.as_str().unwrap().to_owned()
}

/// Opens an example in the table of all, waiting until it is there.
async fn open_example(browser: &Browser, example: &Value) {
    let open = "const all = [...document.querySelectorAll('.viewport tbody a')];
        const found = all.find((one) => one.innerText.trim() === arguments[0]);
        if (found) { found.focus(); found.click(); }
        return Boolean(found)";
    browser
        .until(&format!("there is the example {example}"), async || {
            browser.js_with(open, vec![example.clone()]).await == json!(true)
        })
        .await;
}

/// Both answers, once they are read.
async fn answers(browser: &Browser) -> [Value; 2] {
    let count = "return document.querySelectorAll('.answers .answer .prompt').length";
    browser
        .until("two answers are open", async || browser.js(count).await == 2)
        .await;
    let answers = browser.js(ANSWERS).await;
    [answers[0].clone(), answers[1].clone()]
}

#[tokio::test]
async fn what_both_prompts_answered_stands_side_by_side_in_its_own_words() {
    let (study, _stub) = ended();
    let lines = events(&study.journal());
    let [best, seed] = best_and_seed(&lines).map(|prompt| held_out(&lines, prompt));
    let mut both = seed.iter().zip(&best);
    let (before, after) = both
        .find(|(before, after)| answer(before) != answer(after))
        .unwrap();

    let browser = page::open("/runs").await;
    let run = keep(&browser, &study.journal()).await;
    browser.go(&format!("/run/{run}/result")).await;
    open_example(&browser, &before["example"]).await;
    let [left, right] = answers(&browser).await;
    assert_eq!(
        (&left["name"], &left["text"]),
        (&json!("seed"), &json!(answer(before)))
    );
    assert_eq!(right["text"], answer(after));
    assert_eq!((&left["added"], &right["taken"]), (&json!(""), &json!("")));
    assert!(left["taken"] != "" || right["added"] != "", "{left} {right}");
    assert_eq!(left["top"], right["top"]);
    browser.until_shown("What was asked").await;
    let is_told = "const current = document.querySelectorAll('.viewport a[aria-current=true]');
        return [document.activeElement.matches('.answers h3'), current.length, current[0].innerText.trim()]";
    assert_eq!(browser.js(is_told).await, json!([true, 1, before["example"]]));
    assert_eq!(crate::barriers(&browser).await, Vec::<String>::new());
    // Its rows are where the journal was made.
    browser.click("Download…").await;
    browser.until_shown("Prompt alone (text)").await;
    let menu = browser.text("[role=menu]").await;
    assert!(
        menu.contains("Call of the model") && !menu.contains("Held-out rows"),
        "{menu}"
    );

    // The address names the example, and a telephone has one answer below the other.
    crate::on_telephone(&browser).await;
    browser.reload().await;
    let [first, second] = answers(&browser).await;
    assert!(first["top"].as_f64() < second["top"].as_f64(), "{first} {second}");
    let fits = "const one = document.querySelector('.answers'); return one.scrollWidth <= one.clientWidth";
    assert_eq!(browser.js(fits).await, true);
    browser.click("Close answers").await;
    let is_closed = "return !document.querySelector('.answers') && location.search === ''";
    browser
        .until("no answer is open", async || browser.js(is_closed).await == true)
        .await;
}

#[tokio::test]
async fn the_best_prompts_of_two_runs_stand_beside_each_other() {
    let (study, _stub) = ended();
    let mut lines = events(&study.journal());
    let [best, seed] = best_and_seed(&lines).map(|prompt| (prompt["id"].clone(), held_out(&lines, prompt)));
    // Another run of the same study that came back to the prompt it started from, and lacks one of its traces.
    for line in &mut lines {
        if line["event"] == "finished" {
            line["best"] = seed.0.clone();
        } else if *line == seed.1[1] {
            line["trace"] = json!({ "messages": [] });
            line["without_trace"] = json!(true);
        }
    }
    let other = study.file("other.jsonl");
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
    std::fs::write(&other, text).unwrap();
    let correct = |rollout: &Value| rollout["measurements"]["correct"].as_f64().unwrap();
    let pairs = best.1.iter().zip(&seed.1);
    let worse = pairs.filter(|(best, seed)| correct(best) > correct(seed)).count();

    let browser = page::open("/runs").await;
    let mut runs = Vec::new();
    for journal in [&study.journal(), &other] {
        runs.push(keep(&browser, journal).await);
    }
    browser.go(&format!("/compare?runs={}", runs.join(","))).await;
    browser
        .until_shown("held out, Word problems (1) → Word problems (2)")
        .await;
    browser.until_shown(&format!("worse {worse}")).await;
    open_example(&browser, &best.1[0]["example"]).await;
    let [left, right] = answers(&browser).await;
    assert_eq!(
        [&left["name"], &left["text"], &right["name"], &right["text"]],
        [
            &json!("Word problems (1)"),
            &json!(answer(&best.1[0])),
            &json!("Word problems (2)"),
            &json!(answer(&seed.1[0])),
        ]
    );
    open_example(&browser, &seed.1[1]["example"]).await;
    browser.until_shown("The journal was made without traces.").await;
    let shown = "return document.querySelector('.answers .answer .prompt').textContent";
    assert_eq!(browser.js(shown).await, answer(&best.1[1]));
    browser.type_in("Your note Word problems (2)", "shorter").await;
    browser.until_shown("Kept.").await;
    browser.click("Table (CSV)").await;
    let table = browser.downloaded(".csv").await;
    let head = "example,result,over by itself,correct Word problems (1),correct Word problems (2),";
    assert!(table.starts_with(head) && table.lines().count() == 7, "{table}");
    let noted =
        ",note Word problems (1),note Word problems (2),thumb Word problems (1),thumb Word problems (2)";
    assert!(table.lines().next().unwrap().ends_with(noted), "{table}");
    assert_eq!(table.matches(",,shorter,,\n").count(), 1, "{table}");
}

/// Waits until the note on the open example and its thumbs are these: up and down of the seed prompt, then of the best one.
async fn until_noted(browser: &Browser, note: &str, pressed: [bool; 4]) {
    let noted = "const thumbs = document.querySelectorAll('.answers .answer button[aria-pressed]');
        const pressed = [...thumbs].map((one) => one.getAttribute('aria-pressed') === 'true');
        return [document.querySelector('.answers textarea')?.value, pressed]";
    browser
        .until(
            &format!("it has the note {note} and thumbs {pressed:?}"),
            async || browser.js(noted).await == json!([note, pressed]),
        )
        .await;
}

#[tokio::test]
async fn notes_and_thumbs_stay_with_the_run_and_go_with_it() {
    let (study, _stub) = ended();
    let lines = events(&study.journal());
    let example = held_out(&lines, best_and_seed(&lines)[0])[0]["example"].clone();
    let note = "=right, <b>but</b> long";

    let browser = page::open("/runs").await;
    let run = keep(&browser, &study.journal()).await;
    let first = browser.driver.window().await.unwrap();
    let second = browser.driver.new_tab().await.unwrap();
    for tab in [&second, &first] {
        browser.driver.switch_to_window(tab.clone()).await.unwrap();
        browser.go(&format!("/run/{run}/result")).await;
        open_example(&browser, &example).await;
        until_noted(&browser, "", [false; 4]).await;
    }
    browser.type_in("Your note", note).await;
    browser.until_shown("Kept.").await;
    browser.keys("!").await;
    let note = format!("{note}!");
    let up = [false, false, true, false];
    browser
        .click_at(".answers .answer:nth-child(2) button[aria-pressed]")
        .await;
    until_noted(&browser, &note, up).await;
    assert_eq!(browser.js("return document.activeElement.value").await, note);
    assert_eq!(crate::barriers(&browser).await, Vec::<String>::new());
    browser.driver.switch_to_window(second).await.unwrap();
    until_noted(&browser, &note, up).await;

    browser.reload().await;
    until_noted(&browser, &note, up).await;
    browser.click("with notes 1").await;
    let rows =
        "const rows = document.querySelector('.answers').closest('.plate').querySelectorAll('tbody th');
        return [...rows].map((one) => one.innerText.replace(/\\s+/g, ' ').trim())";
    let expected = json!([format!("{} noted", example.as_str().unwrap())]);
    assert_eq!(browser.js(rows).await, expected);
    let [_, best] = answers(&browser).await;
    browser.click("Table (CSV)").await;
    let table = browser.downloaded(".csv").await;
    let head = format!(",note,thumb seed,thumb {}", best["name"].as_str().unwrap());
    assert!(table.lines().next().unwrap().ends_with(&head), "{table}");
    assert!(table.contains(&format!(",\"'{note}\",,up\n")), "{table}");
    // A thumb that is pressed again is taken back.
    browser.click_at(".answers button[aria-pressed=true]").await;
    until_noted(&browser, &note, [false; 4]).await;
    assert_eq!(journal(&browser).await, lines);

    browser.go("/runs").await;
    browser.click_at("table.runs tbody input[type=checkbox]").await;
    browser.click("Delete…").await;
    browser.click("Download these notes").await;
    let kept = browser.downloaded(".json").await;
    assert!(kept.contains("right, <b>but</b> long!"), "{kept}");
    browser.click("Delete").await;
    browser.until_shown("None in this browser yet").await;
    let stored = browser.js_async(STORED).await.to_string();
    assert!(!stored.contains("<b>") && !stored.contains(&run), "{stored}");
}

#[tokio::test]
async fn the_prompt_of_a_run_is_checked_on_another_model() {
    let browser = page::open("/").await;
    page::run_shortly(&browser).await;
    browser.until_shown("Finished.").await;
    browser.click("Result").await;
    let has_focus = async |selector: &str| {
        let focused = format!("return document.activeElement.matches('{selector}')");
        browser
            .until("the focus is there", async || browser.js(&focused).await == true)
            .await;
    };
    browser.until_shown("Check this prompt on another model…").await;
    browser
        .js("document.getElementById('check-prompt').focus()")
        .await;
    browser.click("Check this prompt on another model…").await;
    has_focus("#check-title").await;
    browser.click("Cancel").await;
    has_focus("#check-prompt").await;
    browser.click("Check this prompt on another model…").await;
    browser.type_in("Model of task agent", "sim-large").await;
    browser.type_in("Held-out examples", "0").await;
    browser
        .until_shown("Type a whole number of held-out examples")
        .await;
    browser.type_in("Held-out examples", "6").await;
    browser.until_shown("12 are expected to take").await;
    browser.click("Check the prompt").await;
    has_focus("h3:not(#check-title)").await;
    let table = "[aria-label='Help desk on sim-large, scrolls sideways']";
    let stands = async || {
        browser
            .until_shown("Of six held-out examples, the prompt was measured on 6, the seed prompt on 6")
            .await;
        browser
            .until("both columns are there", async || {
                let text = browser.text(table).await;
                text.contains("6 examples") && text.contains("Seed prompt") && text.contains('±')
            })
            .await;
        browser
            .until_shown("Under this model minus under the run’s own, on the same examples:")
            .await;
        browser
            .until_shown("Under this model, the prompt minus the seed prompt:")
            .await;
    };
    stands().await;
    browser.reload().await;
    stands().await;
    // It is a run of its own, whose result is the same table.
    browser.click("Help desk on sim-large").await;
    browser.until_shown("It measures prompt").await;
    browser.click("See the result").await;
    stands().await;
}

#[tokio::test]
async fn the_held_out_rows_alone_measure_what_the_run_measured() {
    let (study, _stub) = Study::new("http://unused").on_stub_with(std::time::Duration::ZERO, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;
    let lines = journal(&browser).await;

    let mut taken = Vec::new();
    for (words, ending) in [
        ("Held-out rows", ".jsonl"),
        ("Study of the held-out rows", ".toml"),
    ] {
        // A browser lets a page offer one file before somebody does something.
        browser.reload().await;
        browser.click("Download…").await;
        browser.click(words).await;
        browser.until_shown("--split optimize").await;
        let file = browser.download(ending).await;
        taken.push(study.file(file.file_name().unwrap().to_str().unwrap()));
        std::fs::copy(&file, taken.last().unwrap()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&taken[0]).unwrap().lines().count(), 6);

    let prompt = study.file("best.md");
    std::fs::write(&prompt, best_and_seed(&lines)[0]["prompt"].as_str().unwrap()).unwrap();
    // Whatever else the run read is not needed.
    std::fs::remove_file(study.file("problems.jsonl")).unwrap();
    let mut evaluate = command(["evaluate", "--json", "--split", "optimize", "--prompt"]);
    evaluate.arg(&prompt).arg(&taken[1]);
    let measured = run(evaluate.current_dir(study.folder()).env(KEY, SECRET)).json();
    let finished = of_kind(&lines, "finished").last().unwrap()["evaluation"].clone();
    for metric in ["correct", "too_long"] {
        assert_eq!(measured["estimates"][metric], finished[metric], "{metric}");
    }
}
