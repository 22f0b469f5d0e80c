//! What makes a run seen by others: its rounds once more, a picture of its map, a link that carries it.

use std::collections::BTreeSet;

use capo_browser::{Browser, Key};
use capo_tests::journal::{events, of_kind};
use capo_tests::program::run;
use capo_tests::stub::Stub;
use capo_tests::study::Study;
use serde_json::{Value, json};

use super::{STORED, on_telephone, page};

/// A study whose journal holds a run, and who answers it.
fn ended(study: Study) -> (Study, Stub) {
    let (study, stub) = study.on_stub();
    // How it ends is of no matter here.
    run(&mut study.optimize());
    (study, stub)
}

/// The live page of a run whose journal was opened from a file.
pub(crate) async fn live(study: &Study) -> Browser {
    let browser = page::open("/runs").await;
    browser.choose("Journals to open", &study.journal()).await;
    browser.until_shown("against the worst residual").await;
    browser
        .until("the map is drawn", async || marks(&browser).await > 0)
        .await;
    browser
}

/// Prompts on the map.
async fn marks(browser: &Browser) -> usize {
    let marks = "return document.querySelectorAll('.plot.map [data-point]').length";
    browser.js(marks).await.as_u64().unwrap_or_default() as usize
}

/// Prompts that were measured on search examples when so many rounds had closed; the seed alone before the first.
fn measured(lines: &[Value], rounds: usize) -> usize {
    let mut closed = 0;
    let before = lines.iter().take_while(|line| {
        let is_before =
            closed < rounds || rounds == 0 && line["event"] != "critique" && line["event"] != "rewrite";
        closed += usize::from(line["event"] == "round");
        is_before
    });
    let rollouts = before.filter(|line| line["event"] == "rollout" && line["split"] == "optimize");
    let prompts: BTreeSet<&str> = rollouts.filter_map(|line| line["candidate"].as_str()).collect();
    prompts.len()
}

#[tokio::test]
async fn a_run_that_has_ended_is_shown_once_more_round_by_round() {
    let (study, _stub) = ended(Study::new("http://unused"));
    let lines = events(&study.journal());
    let rounds = of_kind(&lines, "round").len();
    assert!(rounds > 1, "there is something to replay");
    let browser = live(&study).await;
    let bar = ".transport.replay";
    let says = async |words: &str| browser.text(bar).await.contains(words);
    let stands = async |rounds: usize, multipliers: &str| {
        let prompts = measured(&lines, rounds);
        let what = format!("{prompts} prompts and {multipliers} after {rounds} rounds");
        browser
            .until(&what, async || {
                marks(&browser).await == prompts && browser.text("main").await.contains(multipliers)
            })
            .await;
    };
    browser
        .until("the bar is at the end", async || {
            says(&format!("Round {rounds} of {rounds}")).await && !says("Replayed").await
        })
        .await;
    stands(rounds, "J under the last multipliers").await;

    // By keys alone.
    browser.js("document.getElementById('replay').focus()").await;
    browser.press(Key::Home).await;
    stands(0, "J under the multipliers of round 1").await;
    assert!(says(&format!("Seed of {rounds}")).await && says("Replayed").await);
    browser.press(Key::Right).await;
    stands(1, "J under the multipliers of round 2").await;
    let spoken = "return document.getElementById('replay').getAttribute('aria-valuetext')";
    let spoken = browser.js(spoken).await;
    assert_eq!(spoken, json!(format!("Round 1 of {rounds}")));
    // The header is of the end, and says so.
    assert!(says("of the run’s end").await);
    assert!(
        browser
            .text(".runbar")
            .await
            .contains(&format!("{rounds} of {rounds} rounds"))
    );
    browser.click("Back to the end").await;
    stands(rounds, "J under the last multipliers").await;
    assert!(!says("Replayed").await);

    // Played, it begins with the seed and ends where it was.
    browser.click("Play").await;
    browser
        .until("it is replayed", async || says("Replayed").await)
        .await;
    browser
        .until("it has come to its end", async || {
            says(&format!("Round {rounds} of {rounds}")).await && !says("Replayed").await
        })
        .await;
    stands(rounds, "J under the last multipliers").await;
    browser
        .until("it can be played again", async || says("Play").await)
        .await;
}

#[tokio::test]
async fn on_a_telephone_the_bar_stays_with_the_charts() {
    let (study, _stub) = ended(Study::new("http://unused"));
    let browser = live(&study).await;
    on_telephone(&browser).await;
    let in_sight = "window.scrollTo(0, 0);
        const { top, bottom } = document.querySelector('.transport.replay').getBoundingClientRect();
        return top > window.innerHeight / 2 && bottom <= window.innerHeight + 1";
    browser
        .until("the bar is below the charts", async || {
            browser.js(in_sight).await == true
        })
        .await;
    browser.click("Play").await;
    browser
        .until("it is replayed", async || {
            browser.text(".transport.replay").await.contains("Replayed")
        })
        .await;
    assert_eq!(browser.js(in_sight).await, true);
    // Turned on its side it would cover them.
    let low = json!({ "width": 740, "height": 360, "deviceScaleFactor": 1, "mobile": true });
    browser.devtools("Emulation.setDeviceMetricsOverride", low).await;
    assert_eq!(browser.js(in_sight).await, false);
}

#[tokio::test]
async fn a_run_that_goes_on_is_shown_as_it_goes() {
    let browser = page::open("/").await;
    page::run_shortly(&browser).await;
    browser.until_shown("Round 1 closed").await;
    crate::lasting::stop(&browser).await;
    let bar = async || browser.text(".transport.replay").await;
    browser
        .until("there is a bar", async || bar().await.contains("Round"))
        .await;
    browser.js("document.getElementById('replay').focus()").await;
    browser.press(Key::Home).await;
    browser
        .until("the seed alone is shown", async || {
            bar().await.contains("Replayed") && marks(&browser).await == 1
        })
        .await;
    browser.click("Resume").await;
    browser
        .until("it is replayed no more", async || {
            bar().await.is_empty() && marks(&browser).await > 1
        })
        .await;
    browser.until_shown("Finished.").await;
    browser
        .until("it is at its end", async || {
            let bar = bar().await;
            bar.contains("Round") && !bar.contains("Replayed")
        })
        .await;
}

#[tokio::test]
async fn the_map_is_taken_away_as_a_picture() {
    let name = "word <b>problems</b> & sums";
    let (study, _stub) = ended(Study::new("http://unused").with("word problems", name));
    let browser = live(&study).await;
    browser
        .js("document.documentElement.dataset.theme = 'dark'")
        .await;
    browser.click("SVG").await;
    let drawing = browser.downloaded(".svg").await;
    let theme = browser.js("return document.documentElement.dataset.theme").await;
    assert_eq!(theme, json!("dark"));
    let read = "const drawing = new DOMParser().parseFromString(arguments[0], 'image/svg+xml');
        const sheet = [...drawing.querySelectorAll('[class], [style], style, script')].length;
        const { width } = drawing.documentElement.attributes;
        const sentence = [...drawing.querySelectorAll('tspan')].map((one) => one.textContent).join(' ');
        return [drawing.querySelector('parsererror') === null, sheet, Number(width.value),
            sentence, drawing.querySelectorAll('path').length, drawing.querySelector('pattern#hatch') !== null]";
    let read = browser.js_with(read, vec![json!(drawing)]).await;
    assert_eq!(read[0], json!(true), "{drawing}");
    assert_eq!(read[1], json!(0), "{drawing}");
    let sentence = read[3].as_str().unwrap();
    assert!(sentence.starts_with(&format!("{name} after ")), "{sentence}");
    for part in [
        ". Best so far: ",
        ", feasible on the search examples. On examples it never saw, ",
    ] {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
    assert_eq!(read[4], json!(marks(&browser).await));
    assert_eq!(read[5], json!(true));
    // The water of the light palette, and nothing that is to be fetched.
    assert!(drawing.contains("rgb(220, 235, 241)"), "{drawing}");
    for outside in ["var(", "href", "@import", "url(http"] {
        assert!(!drawing.contains(outside), "{outside} in {drawing}");
    }

    // Browsers ask before a second file of the same page.
    let browser = live(&study).await;
    browser.click("PNG").await;
    let picture = browser.download(".png").await;
    let picture = std::fs::read(picture).unwrap();
    assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
    // Twice as many pixels, but for what a scroll bar takes.
    let width = u32::from_be_bytes(picture[16..20].try_into().unwrap());
    let twice = 2.0 * read[2].as_f64().unwrap();
    assert!((f64::from(width) - twice).abs() <= 64.0, "{width} of {twice}");
    // What is of one colour is packed to less.
    assert!(picture.len() > 5_000, "{} bytes", picture.len());
}

#[tokio::test]
async fn a_small_run_travels_in_a_link() {
    let (study, _stub) = ended(Study::new("http://unused").with("rounds = 4", "rounds = 2"));
    let browser = live(&study).await;
    browser.click("Result").await;
    let prompt = async || browser.text("#prompt-text").await;
    browser
        .until("there is a prompt", async || !prompt().await.is_empty())
        .await;
    let before = prompt().await;
    // Browsers without a screen have no clipboard that one could look into.
    browser
        .js("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        .await;
    browser.click("Copy link").await;
    browser
        .until("it is copied", async || {
            browser.js("return window.copied ?? null").await != Value::Null
        })
        .await;
    let link = browser.js("return window.copied").await;
    let link = link.as_str().unwrap();
    let path = link.strip_prefix(&browser.page).unwrap();
    assert!(
        path.starts_with("/runs#run=") && path.len() <= 16_010,
        "{}: {path}",
        path.len()
    );

    // Nothing is kept before somebody has said so.
    let kept = async || {
        let stored = browser.js_async(STORED).await;
        let stored: Value = serde_json::from_str(stored.as_str().unwrap()).unwrap();
        stored["stores"]["runs"].as_array().unwrap().len()
    };
    browser.go(path).await;
    browser.until_shown("This link carries a run.").await;
    assert_eq!(kept().await, 1);
    browser.click("Open the run").await;
    browser.until_shown("without traces: to be read only").await;
    browser.until_shown("against the worst residual").await;
    assert_eq!(kept().await, 2);
    let address = browser.js("return location.href").await;
    assert!(!address.as_str().unwrap().contains("#run="), "{address}");
    browser.click("Result").await;
    browser
        .until("the same prompt is shown", async || prompt().await == before)
        .await;

    // What was changed on its way, or is no journal, is kept by nobody.
    browser.go("/runs#run=not*base64").await;
    browser.until_shown("The link does not read.").await;
    let packed = "const packed = new Blob(['no journal\\n']).stream().pipeThrough(new CompressionStream('gzip'));
        const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
        return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')";
    let packed = browser.js_async(packed).await;
    browser.go("/").await;
    browser
        .go(&format!("/runs#run={}", packed.as_str().unwrap()))
        .await;
    browser.click("Open the run").await;
    browser.until_shown("Nothing was imported").await;
    assert_eq!(kept().await, 2);
}

#[tokio::test]
async fn a_page_that_is_shared_shows_a_picture_that_is_there() {
    let browser = page::open("/dynamics").await;
    let found = "const meta = document.querySelector('meta[property=\"og:image\"]').content;
        const found = await fetch(meta);
        return [meta.startsWith('/'), found.ok, found.headers.get('content-type')]";
    assert_eq!(browser.js_async(found).await, json!([true, true, "image/png"]));
}
