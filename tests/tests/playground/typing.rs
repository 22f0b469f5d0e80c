//! New study as people fill it in: key by key.

use capo_browser::{Browser, Key};
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::{Value, json};

use crate::SECRET;
use crate::page::open;
use crate::team_runs::pick;

/// Opens all that is folded away, and marks every field of the form that text can be typed into.
const MARK: &str = "for (const one of document.querySelectorAll('main details')) one.open = true;
    const all = 'main textarea, main input:not([type=checkbox]):not([type=file]):not([type=radio])';
    window.fields = [...document.querySelectorAll(all)].filter((one) => one.offsetParent && !one.disabled);
    return window.fields.map((one) => one.getAttribute('aria-label') || one.labels[0]?.innerText || one.id)";

/// Puts the cursor into the marked field of a number, in place of what it holds.
const ENTER: &str = "let one = window.fields[arguments[0]];
    if (!one.isConnected) {
        // Another may have been made in its place.
        const label = one.getAttribute('aria-label');
        const all = [...document.querySelectorAll('main input, main textarea')];
        one = all.find((other) => one.id ? other.id === one.id : other.getAttribute('aria-label') === label);
        window.fields[arguments[0]] = one;
    }
    if (!one || !one.offsetParent) return 'gone';
    if (one.disabled) return 'disabled';
    one.focus();
    one.select();
    return 'entered'";

/// Whether the focus is still there, and what the field holds.
const HOLDS: &str = "const one = window.fields[arguments[0]];
    return [document.activeElement === one && one.isConnected, one.value]";

/// Whether the study can run.
pub(crate) const CAN_RUN: &str = "return [...document.querySelectorAll('button')]
    .some((one) => one.innerText.trim() === 'Run study' && !one.disabled)";

/// Presses two keys in every field of the form, one after another.
async fn type_everywhere(browser: &Browser) {
    let fields = browser.js(MARK).await;
    let fields = fields.as_array().unwrap().clone();
    assert!(fields.len() > 20, "{fields:?}");
    for (number, name) in fields.iter().enumerate() {
        let entered = browser.js_with(ENTER, vec![json!(number)]).await;
        assert_ne!(
            entered, "gone",
            "{name}: what is typed elsewhere takes no field away"
        );
        // A key has nowhere to go while the address makes no sense.
        if entered == "disabled" {
            continue;
        }
        browser.keys("12").await;
        let holds = browser.js_with(HOLDS, vec![json!(number)]).await;
        assert_eq!(holds, json!([true, "12"]), "what was typed into {name}");
    }
}

#[tokio::test]
async fn every_field_keeps_the_focus_and_what_is_typed() {
    let browser = open("/study").await;
    for workload in ["Help desk", "Own table", "HTTP endpoint", "tau2 benchmark"] {
        browser.click(workload).await;
        let options = "return [...document.querySelectorAll('main option')].map((one) => one.text.trim())";
        if workload == "Help desk" {
            browser
                .until("a model may play the customer", async || {
                    browser.js(options).await.to_string().contains("A language model")
                })
                .await;
        }
        assert!(
            !browser.js(options).await.to_string().contains("Llm"),
            "{workload}"
        );
        for provider in ["openai-compatible", "openai"] {
            let choose = "const one = document.querySelector('[aria-label=\"Provider of task agent\"]');
                if (!one) return false;
                one.value = arguments[0];
                one.dispatchEvent(new Event('change', { bubbles: true }));
                return true";
            browser
                .until("there is a provider to choose", async || {
                    browser.js_with(choose, vec![json!(provider)]).await == json!(true)
                })
                .await;
            type_everywhere(&browser).await;
        }
    }
}

/// Whoever removes by keyboard goes on where the removed row was, and is not sent to the top of the page.
#[tokio::test]
async fn what_is_removed_leaves_the_focus_in_its_place() {
    let browser = open("/study").await;
    browser.click("Objective and constraints").await;
    let begin = "const first = document.querySelector('.col-remove button');
        if (first) first.focus();
        return Boolean(first)";
    browser
        .until("there are constraints", async || {
            browser.js(begin).await == json!(true)
        })
        .await;
    let focused = "const one = document.activeElement;
        const rows = document.querySelectorAll('td.col-remove').length;
        const row = [...document.querySelectorAll('td.col-remove button')].indexOf(one);
        return [rows, row, Boolean(one.closest('main'))]";
    let rows = browser.js(focused).await[0].as_u64().unwrap();
    assert!(rows > 1);
    for left in (0..rows).rev() {
        browser.press(Key::Enter).await;
        // In the place of the first row is the next; after the last there is none.
        let row = if left == 0 { json!(-1) } else { json!(0) };
        browser
            .until("the focus is where the row was", async || {
                browser.js(focused).await == json!([left, row, true])
            })
            .await;
    }
}

#[tokio::test]
async fn an_address_and_a_key_are_typed_and_deleted_letter_by_letter() {
    let study = Study::new("http://unused");
    let stub = Stub::start_with(std::time::Duration::ZERO, Some(SECRET), study.models().script());
    let browser = crate::set_up(&study, "").await;
    browser.type_in("Base URL of task agent", &stub.base_url).await;
    browser.type_in("Key of task agent", SECRET).await;
    browser.click("Test").await;
    browser.until_shown("answers").await;
    // A question mark in a key is part of the key, and calls for no help.
    browser.type_in("Key of task agent", "sk-a?b").await;
    assert_eq!(
        browser
            .js("return document.querySelector('dialog[open]') === null")
            .await,
        Value::Bool(true)
    );
    browser.type_in("Base URL of task agent", "h").await;
    browser.press(Key::Backspace).await;
    let left = "const one = document.activeElement; return [one.getAttribute('aria-label'), one.value]";
    assert_eq!(browser.js(left).await, json!(["Base URL of task agent", ""]));
}

#[tokio::test]
async fn rows_with_a_question_reach_an_agent_of_one_s_own() {
    let browser = open("/study").await;
    let simulated = "Simulated models are made for the help desk.";
    browser.until_shown("Task agent").await;
    assert!(!browser.text("main").await.contains(simulated));
    browser.click("Tool agent over HTTP").await;
    browser.until_shown("Test with the first example").await;
    browser.type_in("Address", "http://127.0.0.1:9/run").await;
    browser
        .type_in("Paste rows here", "id,question,answer\na,1,2\nb,3,4\nc,5,6")
        .await;
    browser.press(Key::Tab).await;
    browser.until_shown("3 rows").await;
    browser
        .until("the study can run", async || {
            browser.js(CAN_RUN).await == Value::Bool(true)
        })
        .await;
    assert!(!browser.text("main").await.contains("no such setting"));
    // Who writes the prompts knows nothing of such an agent, until another model does.
    browser.until_shown(simulated).await;
    browser
        .until_shown("As critic and rewriter, this one shows how a search goes")
        .await;
    pick(&browser, "Provider of rewriter", "OpenAI").await;
    browser
        .until("that is said no more", async || {
            !browser.text("main").await.contains(simulated)
        })
        .await;
}

/// The value of the field of this id.
pub(crate) async fn held(browser: &Browser, id: &str) -> String {
    let value = "return document.getElementById(arguments[0])?.value ?? ''";
    let value = browser.js_with(value, vec![json!(id)]).await;
    value.as_str().unwrap().to_owned()
}

/// Chooses the task agent's provider.
pub(crate) const CHOOSE_OPENAI: &str =
    "const one = document.querySelector('[aria-label=\"Provider of task agent\"]');
    one.value = 'openai';
    one.dispatchEvent(new Event('change', { bubbles: true }))";

/// Chooses a table of one's own and types its rows.
async fn take_three_rows(browser: &Browser) {
    browser.click("Own table").await;
    browser
        .type_in("Paste rows here", "question,answer\na,1\nb,2\nc,3")
        .await;
    browser.press(Key::Tab).await;
    browser.until_shown("3 rows").await;
}

#[tokio::test]
async fn what_is_typed_survives_a_reload_and_no_key_is_kept() {
    let browser = open("/study").await;
    take_three_rows(&browser).await;
    browser.type_in("System prompt", "Answer with a number.").await;
    browser.js(CHOOSE_OPENAI).await;
    browser.type_in("Model of task agent", "gpt-4o-mini").await;
    browser.type_in("Key of task agent", SECRET).await;
    browser.type_in("Rounds", "3").await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    browser.reload().await;
    browser.until_shown("3 rows").await;
    assert_eq!(held(&browser, "f-prompt-text").await, "Answer with a number.");
    assert_eq!(held(&browser, "f-study-rounds").await, "3");
    assert_eq!(held(&browser, "f-study-name").await, "own table");
    let stored = browser.js_async(crate::STORED).await.to_string();
    assert!(
        stored.contains("gpt-4o-mini") && !stored.contains(SECRET),
        "{stored}"
    );
    browser.click("Start anew").await;
    browser
        .until("the built-in study is back", async || {
            held(&browser, "f-study-name").await == "help desk"
        })
        .await;
}

#[tokio::test]
async fn a_value_that_makes_no_sense_is_refused_at_its_field() {
    let browser = open("/study").await;
    for (label, typed, words) in [
        ("Selection γ", "-1", "Write a number of 0 or more."),
        ("Dual step β", "1e308", "Write a number of 1000000 or less."),
        (
            "Threshold for human requests",
            "150",
            "Write a number of 100 or less.",
        ),
    ] {
        browser.type_in(label, typed).await;
        let said = "const one = document.activeElement;
            const ids = (one.getAttribute('aria-describedby') || '').split(' ');
            const words = ids.map((id) => document.getElementById(id)?.innerText || '').join(' ');
            return [one.getAttribute('aria-invalid'), words]";
        browser
            .until(&format!("{label} {typed} is refused"), async || {
                let said = browser.js(said).await;
                said[0] == "true" && said[1].as_str().unwrap().contains(words)
            })
            .await;
    }
}

/// The form knows no provider's rules: whoever looks at the study beside the page says what every call would be refused for.
#[tokio::test]
async fn what_a_provider_refuses_is_told_before_the_run() {
    let study = Study::new("http://unused");
    let shipped = include_str!("../../../studies/help-desk.toml");
    let text = shipped.replace(
        "provider = \"simulated\"\nmodel = \"sim-medium\"",
        "provider = \"openai\"\nmodel = \"gpt-5-mini\"\ntemperature = 0.3",
    );
    assert_ne!(text, shipped);
    std::fs::write(study.path(), text).unwrap();
    let browser = open("/study").await;
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("takes no temperature").await;
}

#[tokio::test]
async fn a_refused_key_is_asked_for_where_it_is_told() {
    let (study, stub) = Study::new("http://unused").on_stub_with(std::time::Duration::ZERO, Some(SECRET));
    let browser = crate::set_up(&study, "").await;
    browser.type_in("Key of task agent", "sk-a-wrong-one").await;
    browser.click("Run study").await;
    let host = stub
        .base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    browser
        .until_shown(&format!("{host} refused the key (401)."))
        .await;
    // Above the fold, with its field.
    let place = "return [...document.querySelectorAll('main input[type=password]')]
        .filter((one) => one.offsetParent)
        .map((one) => one.getBoundingClientRect().bottom)";
    let place = browser.js(place).await;
    let place = place[0].as_f64().expect("a field that is seen");
    assert!(0.0 < place && place < 600.0, "{place}");
    browser
        .until("nothing is being measured", async || {
            !browser.text("main").await.contains("is being measured")
        })
        .await;
    // The top bar leads to the same key.
    browser.click("Keys").await;
    browser.until_shown("Keys of this tab").await;
    browser.click("Close").await;
    browser.type_in(&format!("Key for {host}"), SECRET).await;
    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
}

#[tokio::test]
async fn a_key_refused_before_the_study_begins_is_asked_for_too() {
    let (study, stub) = Study::new("http://unused").on_stub_with(std::time::Duration::ZERO, Some(SECRET));
    let browser = crate::set_up(&study, "").await;
    browser.type_in("Key of task agent", "sk-a-wrong-one").await;
    browser.click("Measure the seed prompt on 5 examples first").await;
    let host = stub.base_url.trim_start_matches("http://");
    let host = host.trim_end_matches("/v1");
    browser
        .until_shown(&format!("{host} refused the key (401)."))
        .await;
    browser.type_in(&format!("Key for {host}"), SECRET).await;
    browser.click("Resume").await;
    browser
        .until_shown("By five rollouts, the whole study is expected to take")
        .await;
}

#[tokio::test]
async fn keys_kept_here_are_offered_where_a_run_asks_for_one() {
    let (study, stub) = Study::new("http://unused").on_stub_with(crate::LATENCY, Some(SECRET));
    let browser = crate::set_up(&study, "").await;
    browser.type_in("Key of task agent", SECRET).await;
    browser.click("Keys").await;
    browser.until_shown("Keys of this tab").await;
    browser.click_at("dialog[open] input[type=checkbox]").await;
    browser.type_in("Passphrase", "correct horse battery").await;
    browser
        .type_in("The same once more", "correct horse battery")
        .await;
    browser.press(Key::Enter).await;
    browser.until_shown("Kept, encrypted").await;
    browser.click("Close").await;
    crate::pause_after(&browser, &stub, 30, "Run study").await;
    browser.reload().await;
    browser.until_shown("To go on, this run needs a key.").await;
    browser.click("Unlock the keys kept here").await;
    browser.type_in("Passphrase", "correct horse battery").await;
    browser.press(Key::Enter).await;
    browser.until_shown("Taken out:").await;
    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
}

#[tokio::test]
async fn without_constraints_the_live_page_has_no_holes() {
    let browser = open("/study").await;
    browser.click("Own table").await;
    browser
        .type_in(
            "Paste rows here",
            "question,answer\n1+1,2\n1+2,3\n2+2,4\n3+2,5\n4+2,6\n4+4,8",
        )
        .await;
    browser.press(Key::Tab).await;
    browser.until_shown("6 rows").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    let plates = "return [...document.querySelectorAll('.g-run > * .plate h2, .g-run > .plate h2')]
        .map((one) => one.innerText.replace(/\\s+/g, ' ').trim())";
    let plates = browser.js(plates).await.to_string();
    assert!(plates.contains("A Correct"), "{plates}");
    assert!(
        plates.contains("B Pool") && plates.contains("C Activity"),
        "{plates}"
    );
    assert!(
        !plates.contains("Steer") && !plates.contains("residual"),
        "{plates}"
    );
    assert!(browser.text("main").await.contains("Own table"));
}

#[tokio::test]
async fn one_constraint_leaves_its_plates_wider_than_tall() {
    let (study, _stub) = Study::new("http://unused")
        .with("api_key_env = \"CAPO_TEST_KEY\"\n", "")
        .on_stub_with(std::time::Duration::ZERO, None);
    let browser = crate::set_up(&study, "").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    let shapes = "return [...document.querySelectorAll('.strips > .plate')]
        .map((one) => one.getBoundingClientRect()).map(({ width, height }) => [width, height])";
    let shapes = browser.js(shapes).await;
    let shapes = shapes.as_array().unwrap();
    assert_eq!(shapes.len(), 2);
    for shape in shapes {
        assert!(shape[0].as_f64() >= shape[1].as_f64(), "{shapes:?}");
    }
}

#[tokio::test]
async fn all_duplicates_of_a_table_are_left_out_with_one_press() {
    let browser = open("/study").await;
    browser.click("Own table").await;
    let rows: Vec<String> = (0..12).map(|row| format!("q{},{}", row % 4, row % 4)).collect();
    let text = format!("question,answer\n{}", rows.join("\n"));
    browser.type_in("Paste rows here", &text).await;
    browser.press(Key::Tab).await;
    browser.until_shown("is the same as").await;
    assert!(!browser.text("main").await.contains("exclude ="));
    browser.click("Leave all duplicates out").await;
    browser.until_shown("left out, as the others ask the same").await;
    browser
        .until("nothing is wrong any more", async || {
            !browser.text("main").await.contains("is the same as")
        })
        .await;
    browser
        .until("the study can run", async || {
            browser.js(CAN_RUN).await == Value::Bool(true)
        })
        .await;
}

#[tokio::test]
async fn templates_and_usual_constraints_spare_the_typing() {
    let browser = open("/study").await;
    take_three_rows(&browser).await;
    browser.click("Classify").await;
    browser
        .until("the prompt asks for a label", async || {
            held(&browser, "f-prompt-text")
                .await
                .contains("nothing but the label")
        })
        .await;
    browser.click("Short answers").await;
    browser
        .until("the length of answers is limited", async || {
            held(&browser, "f-constraint-answer-length").await == "100"
        })
        .await;
    browser.click("Short answers").await;
    browser.until_shown("this study limits them already").await;
    browser
        .js("window.told = [...document.querySelectorAll('[role=status]')].find(told => told.textContent.includes('limits them')).firstChild")
        .await;
    browser.click("Short answers").await;
    browser
        .until("the same words are told anew", async || {
            browser.js("return window.told.isConnected").await == Value::Bool(false)
        })
        .await;
    browser.type_in("Rounds", "3").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    assert!(browser.text("main").await.contains("Answer length"));
}

#[tokio::test]
async fn a_server_that_wants_a_key_after_all_is_given_one() {
    let (study, stub) = Study::new("http://unused")
        .with("api_key_env = \"CAPO_TEST_KEY\"\n", "")
        .on_stub_with(std::time::Duration::ZERO, Some(SECRET));
    let browser = crate::set_up(&study, "").await;
    browser.click("Run study").await;
    let host = stub
        .base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    browser.until_shown(&format!("{host} wants a key (401).")).await;
    // Why, in the words of the failure.
    browser.until_shown("HTTP 401: a key is needed").await;
    browser.type_in(&format!("Key for {host}"), SECRET).await;
    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
}

#[tokio::test]
async fn rows_that_do_not_read_are_told_where_they_go() {
    let browser = open("/study").await;
    browser.click("Own table").await;
    browser
        .type_in("Paste rows here", "{\"question\": \"a\"}\n{\"question\": ")
        .await;
    browser.press(Key::Tab).await;
    let told = "return document.querySelector('form .msg[role=alert]')?.innerText ?? ''";
    browser
        .until("the form says that they do not read", async || {
            let told = browser.js(told).await;
            told.as_str().unwrap().contains("These rows do not read.")
        })
        .await;
}

#[tokio::test]
async fn a_draft_that_was_replaced_is_offered_back_after_a_reload_too() {
    let browser = open("/study").await;
    take_three_rows(&browser).await;
    browser.type_in("Rounds", "3").await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    browser.click("Start anew").await;
    browser.until_shown("Back to the former draft, “own table”").await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    browser.reload().await;
    browser
        .until("the built-in study is there", async || {
            held(&browser, "f-study-name").await == "help desk"
        })
        .await;
    browser.click("Back to the former draft").await;
    browser.until_shown("3 rows").await;
    assert_eq!(held(&browser, "f-study-rounds").await, "3");
}

#[tokio::test]
async fn a_tab_in_which_nothing_is_changed_leaves_the_draft_of_another_alone() {
    let browser = open("/study").await;
    browser.type_in("Rounds", "5").await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let first = browser.driver.window().await.unwrap();
    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second.clone()).await.unwrap();
    browser.go("/study").await;
    browser.type_in("Rounds", "3").await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    browser.driver.switch_to_window(first).await.unwrap();
    browser.go("/").await;
    browser.driver.switch_to_window(second).await.unwrap();
    browser.reload().await;
    assert_eq!(held(&browser, "f-study-rounds").await, "3");
}

#[tokio::test]
async fn a_test_is_set_up_by_typing_and_its_verdict_opens_the_result() {
    let browser = open("/study").await;
    browser.until_shown("Help desk").await;
    browser.click("Method").await;
    let toggle = "const box = [...document.querySelectorAll('label.choice')]
        .find((one) => one.innerText.startsWith('At the end, test'))?.querySelector('input');
        if (!box || box.disabled) return false;
        box.click();
        return true";
    browser
        .until("the test can be asked for", async || {
            browser.js(toggle).await == json!(true)
        })
        .await;
    browser
        .until_shown("human requests ≤ 0.37 is certified by at most 3 of 20 examples.")
        .await;
    browser
        .until_shown("can be certified once its largest value is stated.")
        .await;
    browser.type_in("Held-out examples kept for it", "300").await;
    browser
        .until_shown("of the held-out examples are to be kept for the test")
        .await;
    browser.type_in("Held out", "340").await;
    browser.type_in("Largest value of excess tools", "12").await;
    browser
        .until_shown(" ≤ 1.25 is certified by a mean of at most")
        .await;
    browser.until_shown("by at most 96 of 300 examples").await;
    browser.type_in("Rollouts", "4000").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    browser.click("Result").await;
    browser
        .until_shown("Test of the best prompt: certified at 95 % on n = ")
        .await;
    let tag = browser
        .js("return document.querySelector('.verdict .tag').innerText")
        .await;
    assert_eq!(tag, "certified");
    let captions = browser
        .js("return [...document.querySelectorAll('caption')].map((one) => one.innerText)")
        .await;
    assert!(captions.to_string().contains("certified at 95 %"), "{captions}");
    // The held-out examples of before beside as many new ones for the test as would have decided of the prompt that was left
    // undecided.
    browser.click("Search again, with a test…").await;
    browser.until_shown("The study was taken in.").await;
    let evaluate = browser
        .js("return document.getElementById('f-workload-evaluate').value")
        .await;
    assert_eq!(evaluate, "470");
}
