//! Cards beside marks: what they say by pointer and by keyboard, two prompts pinned from them, rewrites that gave none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capo_browser::{Browser, Key};
use capo_tests::journal::{events, of_kind};
use capo_tests::program::run;
use capo_tests::stub::{Answer, Stub};
use capo_tests::study::Study;
use serde_json::{Value, json};

use super::showing::live;
use super::{barriers, fits, on_telephone};

/// Moves the pointer to the middle of the element that a selector finds, scrolled to where there is room around it.
async fn point_at(browser: &Browser, selector: &str) {
    let middle = "const found = document.querySelector(arguments[0]);
        if (!found.closest('.mark-card')) found.scrollIntoView({ block: 'center', inline: 'center' });
        const { left, right, top, bottom } = found.getBoundingClientRect();
        return [(left + right) / 2, (top + bottom) / 2].map(Math.round)";
    let middle = browser.js_with(middle, vec![json!(selector)]).await;
    let [x, y] = [0_usize, 1].map(|axis| middle[axis].as_i64().unwrap());
    let chain = browser.driver.action_chain().move_to(x, y);
    chain.perform().await.unwrap();
}

/// Waits until a card is shown that says this.
async fn card_says(browser: &Browser, words: &str) {
    let what = format!("a card says `{words}`");
    browser
        .until(&what, async || browser.text(".mark-card").await.contains(words))
        .await;
}

async fn has_card(browser: &Browser) -> bool {
    browser
        .js("return document.querySelector('.mark-card') !== null")
        .await
        == true
}

async fn until_no_card(browser: &Browser) {
    browser
        .until("the card is closed", async || !has_card(browser).await)
        .await;
}

#[tokio::test]
async fn marks_have_cards_from_which_two_prompts_are_pinned_and_compared() {
    let study = Study::new("http://unused").with("rounds = 4", "rounds = 2");
    let (models, has_refused) = (study.models(), AtomicBool::new(false));
    let stub = Stub::start(move |question, _| {
        if question.is_rewrite() && !has_refused.swap(true, Ordering::Relaxed) {
            return Answer::Text("I would rather not.".into());
        }
        models.answer(question)
    });
    let study = study.with("http://unused", &stub.base_url);
    // How it ends is of no matter here.
    run(&mut study.optimize());
    let lines = events(&study.journal());
    let prompts = of_kind(&lines, "candidate");
    let seed = prompts[0]["id"].as_str().unwrap();
    let childless = |line: &&&Value| line["child"].is_null();
    let refused = of_kind(&lines, "rewrite").iter().filter(childless).count();
    assert!(refused > 0, "a rewrite gave no child");
    let browser = live(&study).await;

    // Marks that say the same lie on each other: the last one is above.
    let uppermost = "const marks = [...document.querySelectorAll('.plot.map [data-id]')];
        return marks.map((mark) => mark.dataset.id).filter((id) => id !== arguments[0]).at(-1)";
    browser
        .until("children are on the map", async || {
            browser.js_with(uppermost, vec![json!(seed)]).await.is_string()
        })
        .await;
    let child = browser.js_with(uppermost, vec![json!(seed)]).await;
    let child = child.as_str().unwrap();

    // By pointer: the card says more than the mark, does not lie over it, and can be gone into.
    let mark = format!(".plot.map [data-id='{child}']");
    point_at(&browser, &mark).await;
    card_says(&browser, &child[..6]).await;
    card_says(&browser, "Against its parent").await;
    card_says(&browser, "Solve the problem.").await;
    let over = format!(
        "const [mark, card] = [\"{mark}\", '.mark-card'].map((one) => document.querySelector(one).getBoundingClientRect());
        return card.bottom <= mark.top || card.top >= mark.bottom"
    );
    assert_eq!(browser.js(&over).await, json!(true));
    point_at(&browser, ".mark-card button").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(has_card(&browser).await);
    browser.click_at(".mark-card button").await;
    browser.until_shown("Pin another prompt").await;
    browser.press(Key::Escape).await;
    until_no_card(&browser).await;
    point_at(&browser, &mark).await;
    card_says(&browser, "Unpin").await;
    point_at(&browser, "h1, .brand").await;
    until_no_card(&browser).await;

    // By keyboard, on a telephone's screen, within which the card stays.
    on_telephone(&browser).await;
    browser
        .js("document.querySelector('.plot.map [tabindex=\"0\"]').focus()")
        .await;
    browser.press(Key::End).await;
    browser.press(Key::Home).await;
    card_says(&browser, &seed[..6]).await;
    let is_inside =
        "const { left, right, top, bottom } = document.querySelector('.mark-card').getBoundingClientRect();
        return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight";
    browser
        .until("the card is in the window", async || {
            browser.js(is_inside).await == true
        })
        .await;
    assert!(fits(&browser).await);
    browser.press(Key::Space).await;
    let changes = "return document.querySelectorAll('.pinned :is(ins, del)').length";
    browser
        .until("both are compared", async || {
            browser.js(changes).await.as_u64() > Some(0)
        })
        .await;
    assert_eq!(barriers(&browser).await, Vec::<String>::new());
    browser.press(Key::Escape).await;
    until_no_card(&browser).await;
    let focused = browser.js("return document.activeElement.dataset.id").await;
    assert_eq!(
        focused,
        json!(seed),
        "the first Escape leaves the focus where it is"
    );
    browser.click("Unpin").await;
    browser.until_shown("Pin another prompt").await;
    assert_eq!(browser.js(changes).await, json!(0));

    // What gave no child stands in the lineage with its reason, and is not counted.
    browser.click("Candidates").await;
    browser.until_shown(&format!("{} prompts", prompts.len())).await;
    let crosses = "return document.querySelectorAll('.lineage [data-point]:not([data-id])').length";
    browser
        .until("every such rewrite is there", async || {
            browser.js(crosses).await == json!(refused)
        })
        .await;
    // As a table its prompts, and their parents, are links.
    browser.click("View as table").await;
    let ids = "return [...document.querySelectorAll('#plate-A td a.id')].map((one) => one.pathname.split('/').pop())";
    browser
        .until("the seed is a link where it is a parent", async || {
            let ids = browser.js(ids).await;
            ids.as_array().unwrap().contains(&json!(seed))
        })
        .await;
    point_at(&browser, ".lineage [data-point]:not([data-id])").await;
    card_says(
        &browser,
        "gave no child (it has no text between <prompt> and </prompt>)",
    )
    .await;
    let linked = "return document.querySelector('#plate-A td a.id').pathname";
    let linked = browser.js(linked).await;
    browser.click_at("#plate-A td a.id").await;
    browser
        .until("the link is followed", async || {
            browser.js("return location.pathname").await == linked
        })
        .await;
}
