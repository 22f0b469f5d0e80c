//! The playground in a real browser.

#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its own parts too"
)]

mod beginning;
mod benchmark;
mod cards;
mod dollars;
mod edge;
#[expect(dead_code, reason = "other tests use other parts")]
#[path = "../edge_worker/mod.rs"]
mod edge_worker;
mod examples;
mod hardships;
mod lasting;
mod new_study;
mod page;
mod race;
mod report;
mod showing;
mod team;
mod team_data;
mod team_hardships;
mod team_keys;
mod team_oidc;
mod team_prompts;
mod team_runs;
mod team_trainings;
mod trace;
mod typing;
mod words;

use std::time::Duration;

use capo_browser::{Browser, Key};
use capo_tests::journal::{events, of_kind};
use capo_tests::program::run;
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::Study;
use serde_json::Value;

use self::page::{open, run_shortly};

/// Slow enough that a run can be met in its midst.
const LATENCY: Duration = Duration::from_millis(60);

/// The key of the stub.
const SECRET: &str = "sk-only-for-the-stub";

#[tokio::test]
async fn the_demonstration_finds_a_feasible_prompt() {
    let browser = open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Simulated models, not a real agent").await;
    browser.until_shown("Round 2 closed").await;
    // A violated constraint's multiplier rose above where it began.
    let multipliers =
        "return [...document.querySelectorAll('.strips .c-label')].map((one) => one.textContent)
        .filter((text) => /^\\d+\\.\\d\\d$/.test(text)).map(Number)";
    let multipliers = browser.js(multipliers).await;
    let most = multipliers
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .fold(0.0, f64::max);
    assert!(most > 1.0, "{multipliers}");
    browser
        .until_shown("First prompt feasible on the search examples")
        .await;
    browser.until_shown("Finished.").await;
    let mut best = Value::Null;
    browser
        .until("plate, map and pool tell of one best prompt", async || {
            best = browser.js(ONE_BEST).await;
            best.is_string()
        })
        .await;
    // Symbols in the log, one for every round at least, are no stops for the keyboard.
    let symbols = "return ['.math', '.term'].map((kind) => document.querySelectorAll('.log ' + kind).length)";
    let symbols = browser.js(symbols).await;
    assert!(symbols[0].as_u64() > Some(0) && symbols[1] == 0, "{symbols}");
    // What stands in a figure is explained where it stands.
    browser.click("Pool").await;
    browser.until_shown("What the words mean").await;
    assert!(
        browser
            .text("dialog[open] dd")
            .await
            .contains("kept after a round")
    );
    browser.click("Close").await;
    browser.click("Result").await;
    browser.until_shown("Copy prompt").await;
    let result = browser.text("main").await;
    assert!(
        result.contains("feasible") && result.contains(best.as_str().unwrap()),
        "{best}: {result}"
    );

    // Nothing left the page's own host, and nothing went wrong on the way.
    let elsewhere: Vec<String> = browser.requests().await;
    let elsewhere: Vec<&String> = elsewhere
        .iter()
        .filter(|url| !is_own(url, &browser.page))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let console = browser.console().await;
    assert!(!console.contains("SEVERE"), "{console}");

    // The lineage is wider than a telephone, which shows where the best prompt is.
    on_telephone(&browser).await;
    browser.click("Candidates").await;
    let in_view = "const region = document.querySelector('.lineage')?.closest('.scroll');
        const ring = region?.querySelector('.c-ring')?.getBoundingClientRect();
        const seen = region?.getBoundingClientRect();
        return Boolean(ring) && region.scrollWidth > region.clientWidth && ring.left >= seen.left && ring.right <= seen.right";
    browser
        .until("the best prompt is in view", async || {
            browser.js(in_view).await == true
        })
        .await;
}

/// The prompt that is ringed on the map, if it alone is, and the pool and the first plate call it the best; the pool has one
/// column of lengths.
const ONE_BEST: &str = "const rings = [...document.querySelectorAll('.plot.map .c-ring')]
        .map((ring) => ring.parentElement.querySelector('[data-id]').dataset.id.slice(0, 6));
    const texts = (cells) => [...cells].map((one) => one.innerText.trim());
    const pool = document.querySelector('table.sticky-1');
    const rows = [...(pool?.querySelectorAll('tbody tr') ?? [])].map(({ cells }) => texts(cells))
        .filter((cells) => cells.at(-1) === 'best prompt');
    const now = document.querySelector('#plate-A .now')?.innerText ?? '';
    if (rings.length !== 1 || rows.length !== 1) return null;
    const lengths = texts(pool.tHead.rows[0].cells).filter((head) => /length|characters/i.test(head));
    const [id, , , objective] = rows[0];
    return lengths.length === 1 && id === rings[0] && now.endsWith(', best prompt')
        && now.startsWith(objective.split(' ')[0]) ? id : null";

#[tokio::test]
async fn a_run_takes_the_worker_that_waits() {
    let browser = open("/").await;
    let started = async || {
        let scripts = "return performance.getEntriesByType('resource')
            .filter(({ name }) => name.includes('/worker.js')).length";
        browser.js(scripts).await
    };
    browser
        .until("a worker waits", async || started().await == 1)
        .await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
    assert_eq!(started().await, 1);
    // Another one waits where the next run is set up, which asks one of its own.
    browser.click("New study").await;
    browser
        .until("two more have started", async || started().await == 3)
        .await;
}

/// Whether an address is the page's own, or none that leaves the browser.
fn is_own(url: &str, page: &str) -> bool {
    ["data:", "blob:", "chrome:", "chrome-untrusted:"]
        .iter()
        .any(|inside| url.starts_with(inside))
        || url.starts_with(page)
}

/// Opens the set-up page and gives it the study, its data and the key.
async fn set_up(study: &Study, key: &str) -> Browser {
    let browser = open("/study").await;
    browser.choose("Study file", &study.path()).await;
    browser.until_shown("was taken in").await;
    browser.choose("Rows", &study.file("problems.jsonl")).await;
    browser.fill("Key of task agent", key).await;
    browser
}

/// What this tab's storage holds, as text.
const STORED: &str = "const open = () => new Promise((resolve, reject) => {
        const request = indexedDB.open('capo');
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const database = await open();
    const all = (store) => new Promise((resolve, reject) => {
        const request = database.transaction(store).objectStore(store).getAll();
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const stores = {};
    for (const store of database.objectStoreNames) stores[store] = await all(store);
    database.close();
    return JSON.stringify({ stores, local: { ...localStorage }, session: { ...sessionStorage } })";

/// The lines of the only journal that this browser keeps.
async fn journal(browser: &Browser) -> Vec<Value> {
    let stored: Value = serde_json::from_str(browser.js_async(STORED).await.as_str().unwrap()).unwrap();
    let chunks = stored["stores"]["lines"].as_array().unwrap().clone();
    let lines = chunks.iter().flat_map(|chunk| chunk.as_str().unwrap().lines());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_table_study_survives_rate_limits_and_a_bad_key() {
    let study = Study::new("http://unused");
    let models = study.models();
    let stub = Stub::start_with(Duration::ZERO, Some(SECRET), move |question, asked| {
        // Every seventh first question is put off.
        let unlucky = question.seed.is_some_and(|seed| seed % 7 == 0);
        match asked {
            0 if unlucky => Answer::Error(429, Some(0)),
            _ => models.answer(question),
        }
    });
    let study = study.with("http://unused", &stub.base_url);
    let browser = set_up(&study, "sk-a-wrong-one").await;
    browser.click("Test").await;
    browser.until_shown("refused the key (401)").await;
    browser.fill("Key of task agent", SECRET).await;
    browser.click("Test").await;
    browser.until_shown("answers").await;
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;

    let text = browser.js_async(STORED).await;
    for (what, text) in [
        ("storage", text.as_str().unwrap().to_owned()),
        (
            "the address",
            browser.js("return location.href").await.to_string(),
        ),
        ("the console", browser.console().await),
        ("the page", browser.text("body").await),
    ] {
        assert!(!text.contains(SECRET), "the key leaked into {what}");
        assert!(
            !text.contains("sk-a-wrong-one"),
            "the wrong key leaked into {what}"
        );
    }
    let journal = journal(&browser).await;
    let finished = of_kind(&journal, "finished");
    assert_eq!(finished.last().unwrap()["status"], "feasible");
    let requests = browser.requests().await;
    let host = stub.base_url.trim_end_matches("/v1");
    let elsewhere: Vec<&String> = requests
        .iter()
        .filter(|url| !is_own(url, &browser.page) && !url.starts_with(host))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[tokio::test]
async fn a_reload_in_the_midst_repeats_no_call() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    // The run comes to a halt on its own in its midst: nothing is under way when the tab goes.
    pause_after(&browser, &stub, 30, "Run study").await;
    let before = stub.request_log();
    browser.reload().await;
    browser.until_shown("Resume").await;
    let host = stub
        .base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    browser.fill(&format!("Key for {host}"), SECRET).await;
    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
    let after = stub.request_log();
    assert!(after.requests > before.requests, "the run went on");
    assert_eq!(
        after.repeats(Question::is_rollout),
        before.repeats(Question::is_rollout)
    );
    assert_eq!(before.repeats(Question::is_rollout), 0);
    assert_eq!(after.repeats(Question::is_rewrite), 0);
}

/// Lets a run go on for so many calls and holds the next ones back.
async fn hold_after(browser: &Browser, stub: &Stub, calls: u64, begin: &str) {
    stub.let_through(calls);
    browser.click(begin).await;
    browser
        .until("the stub holds back what is asked", async || stub.is_held())
        .await;
}

/// Lets a run go on for so many calls, then pauses it and waits until it rests.
async fn pause_after(browser: &Browser, stub: &Stub, calls: u64, begin: &str) {
    hold_after(browser, stub, calls, begin).await;
    browser.click("Pause").await;
    stub.let_all_through();
    browser
        .until_shown("Calls under way were finished and counted")
        .await;
}

#[tokio::test]
async fn two_tabs_take_turns_at_a_run_and_pay_for_nothing_twice() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    pause_after(&browser, &stub, 30, "Run study").await;
    let address = browser.js("return location.href").await;
    let address = address.as_str().unwrap().to_owned();
    let first = browser.driver.window().await.unwrap();

    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second).await.unwrap();
    browser.driver.goto(&address).await.unwrap();
    let host = stub
        .base_url
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    browser.until_shown("Resume").await;
    browser.fill(&format!("Key for {host}"), SECRET).await;
    pause_after(&browser, &stub, 30, "Resume").await;

    // The first tab knows nothing of what the second was answered.
    browser.driver.switch_to_window(first).await.unwrap();
    browser.click("Resume").await;
    browser.until_shown("Finished.").await;
    let request_log = stub.request_log();
    assert_eq!(request_log.repeats(Question::is_rollout), 0);
    assert_eq!(request_log.repeats(Question::is_rewrite), 0);
    let lines = journal(&browser).await;
    let finished = of_kind(&lines, "finished");
    assert_eq!(finished.last().unwrap()["status"], "feasible");
    browser.reload().await;
    browser.until_shown("feasible").await;
    assert!(!browser.text("body").await.contains("cannot be shown"));
}

#[tokio::test]
async fn a_change_taken_back_stands_nowhere() {
    let (study, stub) = Study::new("http://unused").on_stub_with(LATENCY, Some(SECRET));
    let browser = set_up(&study, SECRET).await;
    hold_after(&browser, &stub, 30, "Run study").await;
    let multiplier = "const [slider] = document.querySelectorAll('[id^=steer-m-]');
        if (!slider) return false;
        slider.value = slider.max;
        slider.dispatchEvent(new Event('change', { bubbles: true }));
        return true";
    browser
        .until("a multiplier is moved", async || {
            browser.js(multiplier).await == Value::Bool(true)
        })
        .await;
    browser.until_shown("Pending:").await;
    browser.click("Undo").await;
    stub.let_all_through();
    browser.until_shown("Finished.").await;
    let lines = journal(&browser).await;
    assert!(of_kind(&lines, "steer").is_empty(), "{lines:?}");
}

#[tokio::test]
async fn branching_is_offered_once_a_round_has_closed() {
    let press = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'b', bubbles: true }));";
    let is_asked = "return document.querySelector('dialog[open]') !== null";
    let browser = open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("evaluating the seed prompt").await;
    browser.js(press).await;
    assert_eq!(browser.js(is_asked).await, Value::Bool(false));
    browser.until_shown("Round 1 closed").await;
    browser.js(press).await;
    browser
        .until("it asks after which round", async || {
            browser.js(is_asked).await == Value::Bool(true)
        })
        .await;
    browser.fill("After round", "1").await;
    // Enter does what the button does.
    browser
        .js("document.querySelector('dialog[open] form').requestSubmit()")
        .await;
    browser.until_shown("Branched from study").await;
    let console = browser.console().await;
    assert!(!console.contains("SEVERE"), "{console}");
}

#[tokio::test]
async fn a_steered_threshold_stands_in_the_journal() {
    let browser = open("/").await;
    browser.click("Run the help-desk study").await;
    browser.until_shown("Round 1 closed").await;
    browser.fill("Human requests", "0.5").await;
    browser.until_shown("Pending:").await;
    browser.until_shown("Round 3 closed").await;
    let steers: Vec<Value> = of_kind(&journal(&browser).await, "steer")
        .into_iter()
        .cloned()
        .collect();
    assert_eq!(steers.len(), 1, "{steers:?}");
    // The slider moves in steps.
    let threshold = steers[0]["thresholds"]["human_requests"].as_f64().unwrap();
    assert!((threshold - 0.5).abs() < 0.01, "{steers:?}");
    assert!(browser.text("main").await.contains("You set"));
}

#[tokio::test]
async fn a_journal_of_the_command_line_shows_the_same_result() {
    let (study, _stub) = Study::new("http://unused").on_stub();
    run(&mut study.optimize()).expect_code(0);
    let events = events(&study.journal());
    let finished = of_kind(&events, "finished");
    let best = finished.last().unwrap()["best"].as_str().unwrap().to_owned();

    let browser = open("/runs").await;
    browser.choose("Journals to open", &study.journal()).await;
    browser.until_shown("Word problems").await;
    let run = "return location.pathname.split('/')[2] ?? null";
    let mut opened = Value::Null;
    browser
        .until("it is opened", async || {
            opened = browser.js(run).await;
            opened.is_string()
        })
        .await;
    browser.click("Result").await;
    browser.until_shown(&best[..6]).await;
    assert!(!browser.text("main").await.contains("has correct"));
    assert_eq!(journal(&browser).await, events, "every line is kept as it was");

    // What the critic said before each rewrite.
    browser.until_shown("How it came to be").await;
    browser
        .until_shown("The critic: Wrong answers lack working")
        .await;
    // Other thresholds choose among what is there.
    browser.type_in("Too long at most", "-1").await;
    browser.until_shown("No prompt of this run keeps them all").await;
    browser.type_in("Too long at most", "100").await;
    browser.until_shown("is the best: correct ").await;
    // The best one is ringed in the plot; the threshold is a line that follows the slider, as the field does.
    browser.until_shown("Correct against too long").await;
    let plot = "const plate = [...document.querySelectorAll('figure')].find((one) =>
            one.innerText.includes('Correct against too long'));
        return [plate.querySelectorAll('.c-ring').length, plate.querySelector('.c-thr').getAttribute('x1')]";
    let typed_in = browser.js(plot).await;
    assert_eq!(typed_in[0], 1, "{typed_in}");
    browser.fill("Too long at most, by slider", "0").await;
    let typed = "return [...document.querySelectorAll('label')].find((one) =>
        one.innerText.trim() === 'Too long at most').control.value";
    assert_eq!(browser.js(typed).await, "0");
    let slid = browser.js(plot).await;
    assert_ne!(slid[1], typed_in[1], "{slid}");
    // Six examples are held out.
    browser.until_shown("Example by example").await;
    browser.click("Table (CSV)").await;
    let table = browser.downloaded(".csv").await;
    assert_eq!(table.lines().count(), 7, "{table}");
    browser.click_at("#plate-F tbody a").await;
    browser.click("Whole conversation").await;
    browser
        .until("the example is open", async || {
            let search = browser.js("return location.search").await;
            search.as_str().unwrap().contains("split=evaluate")
        })
        .await;

    // The same journal once more is the same run.
    browser.go("/runs").await;
    browser.choose("Journals to open", &study.journal()).await;
    browser
        .until("it is opened again", async || browser.js(run).await == opened)
        .await;
    assert_eq!(journal(&browser).await, events, "its lines are kept once");
    browser.go("/runs").await;
    let listed = "return document.querySelectorAll('table.runs tbody tr').length";
    browser
        .until("one run is listed", async || browser.js(listed).await == 1)
        .await;
}

#[tokio::test]
async fn an_exported_study_gives_the_command_line_the_same_run() {
    let browser = open("/study").await;
    browser.type_in("Rollouts", "1000").await;
    browser.click("Export TOML").await;
    let toml = browser.downloaded(".toml").await;
    let study = Study::new("http://unused");
    std::fs::write(study.path(), &toml).unwrap();
    browser.click("Run study").await;
    browser.until_shown("Finished.").await;
    run(&mut study.optimize()).expect_code(0);
    let decided = |journal: &[Value]| {
        let finished = of_kind(journal, "finished").last().copied().cloned().unwrap();
        (
            finished["best"].clone(),
            finished["final_scores"].clone(),
            finished["evaluation"].clone(),
        )
    };
    let (page, command_line) = (journal(&browser).await, events(&study.journal()));
    assert_eq!(decided(&page), decided(&command_line));
    assert_eq!(of_kind(&page, "round"), of_kind(&command_line, "round"));
}

#[tokio::test]
async fn the_dynamics_page_steps() {
    let browser = open("/dynamics").await;
    browser.until_shown("Simulated models, not a real agent").await;
    browser.click("Restart").await;
    browser.click("Step").await;
    browser
        .until("round 1 is shown", async || {
            browser.text(".transport").await.contains("Round 1")
        })
        .await;
    browser.click("Back").await;
    browser
        .until("round 0 is shown", async || {
            !browser.text(".transport").await.contains("Round 1")
        })
        .await;
    // The address holds what is turned.
    browser.js("document.getElementById('B-beta').focus()").await;
    browser.press(Key::Right).await;
    browser
        .until("the dual step is in the address", async || {
            browser.js("return location.search").await == "?B-beta=4.5"
        })
        .await;
    browser.reload().await;
    browser
        .until("it is turned as before", async || {
            typing::held(&browser, "B-beta").await == "4.5"
        })
        .await;
}

/// What axe finds on the page shown, of the impacts that keep people out.
async fn barriers(browser: &Browser) -> Vec<String> {
    let axe =
        std::env::var("CAPO_AXE").expect("CAPO_AXE names axe.min.js; run these tests by `cargo xtask test`");
    let axe = std::fs::read_to_string(&axe).unwrap();
    browser.js(&format!("{axe}; return true")).await;
    // Half way between two colours nothing has the contrast that it will have, and a button may become ready at any moment.
    let still = "const still = new CSSStyleSheet();
        still.replaceSync('*, ::before, ::after { transition: none !important }');
        document.adoptedStyleSheets = [still]; return true";
    browser.js(still).await;
    let found = browser.js_async("const found = await axe.run(document, { resultTypes: ['violations'] });
        return JSON.stringify(found.violations
            .filter((one) => ['serious', 'critical'].includes(one.impact))
            .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html).join(' ')}`))");
    let found = serde_json::from_str(found.await.as_str().unwrap()).unwrap();
    browser.js("document.adoptedStyleSheets = []; return true").await;
    found
}

/// Shows the page as a telephone does.
/// Opens the sections of New study that are folded away, for what looks only at what is shown.
const UNFOLD: &str =
    "document.querySelectorAll('main .folded details').forEach((fold) => { fold.open = true; })";

async fn on_telephone(browser: &Browser) {
    let telephone =
        serde_json::json!({ "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true });
    browser
        .devtools("Emulation.setDeviceMetricsOverride", telephone)
        .await;
}

/// Whether nothing of the page is wider than the screen. `innerWidth` of a telephone grows with what is.
async fn fits(browser: &Browser) -> bool {
    let fits = "const { scrollWidth, clientWidth } = document.documentElement;
        return scrollWidth <= clientWidth";
    browser.js(fits).await == Value::Bool(true)
}

#[tokio::test]
async fn axe_finds_no_barrier_on_any_page() {
    let browser = open("/").await;
    let mut found = vec![("first page", barriers(&browser).await)];
    run_shortly(&browser).await;
    browser.until_shown("Round 2 closed").await;
    found.push(("live", barriers(&browser).await));
    browser.until_shown("Finished.").await;
    for page in ["Candidates", "Result", "Runs", "New study", "Constraint dynamics"] {
        browser.click(page).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        browser.js(UNFOLD).await;
        found.push((page, barriers(&browser).await));
    }
    found.retain(|(_, barriers)| !barriers.is_empty());
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test]
async fn the_keyboard_alone_leads_from_load_to_result() {
    let browser = open("/").await;
    let focused = "return document.activeElement ? document.activeElement.innerText.trim() : ''";
    let reach = async |name: &str| {
        for _ in 0..200 {
            browser.press(Key::Tab).await;
            if browser.js(focused).await.as_str().unwrap_or_default() == name {
                return browser.press(Key::Enter).await;
            }
        }
        panic!("the Tab key does not lead to `{name}`");
    };
    reach("Run the help-desk study").await;
    browser.until_shown("Finished.").await;
    reach("Result").await;
    browser.until_shown("Copy prompt").await;
    reach("Copy prompt").await;
}
