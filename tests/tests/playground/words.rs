//! Words of the field explained where they stand, and whether a finger hits what can be pressed.

use capo_browser::{Browser, Key};
use serde_json::{Value, json};

use crate::page::open;
use crate::report::ended;
use crate::showing::live;
use crate::{UNFOLD, on_telephone};

/// The meaning that is shown beside a word.
async fn meaning(browser: &Browser) -> String {
    browser.text("[role=tooltip]").await
}

#[tokio::test]
async fn a_word_is_explained_beside_it_by_key_and_by_pointer() {
    let (study, _stub) = ended();
    let browser = live(&study).await;
    on_telephone(&browser).await;
    let focused = "return (document.activeElement.innerText ?? '').trim()";
    // What it is described by, and whether that lies within the window.
    let shown =
        "const one = document.getElementById(document.activeElement.getAttribute('aria-describedby'));
        if (!one) return null;
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const { clientWidth, clientHeight } = document.documentElement;
        return [one.innerText, left >= 0 && right <= clientWidth && top >= 0 && bottom <= clientHeight]";
    for (term, words) in [
        ("Rollouts", "One example done once"),
        ("λ", "A constraint’s multiplier"),
        ("residual", "divided by the constraint’s scale"),
        ("Pool", "kept after a round"),
    ] {
        let mut presses = 0;
        while browser.js(focused).await != term {
            presses += 1;
            assert!(presses < 300, "the Tab key does not lead to `{term}`");
            browser.press(Key::Tab).await;
        }
        let said = browser.js(shown).await;
        assert!(said[0].as_str().unwrap_or_default().contains(words), "{said}");
        assert_eq!(said[1], true, "{term} is explained within the window");
        browser.press(Key::Escape).await;
        assert_eq!(meaning(&browser).await, "", "Escape takes it away");
        assert_eq!(browser.js(focused).await, term, "and leaves the focus");
    }

    // The pointer may go over to what is said.
    for over in ["h2 .unit .term", "[role=tooltip]"] {
        browser.point_at(over).await;
        assert!(
            meaning(&browser).await.contains("A constraint’s multiplier"),
            "{over}"
        );
    }
    browser.point_at("h1").await;
    assert_eq!(meaning(&browser).await, "");
}

#[tokio::test]
async fn every_page_is_explained_and_leads_to_what_there_is_to_read() {
    let browser = open("/dynamics").await;
    browser.click("Explain this page").await;
    browser.until_shown("two settings side by side").await;
    browser.until_shown("What the words mean").await;
    browser.click("Close").await;
    browser.click("Runs").await;
    browser.click("Explain this page").await;
    browser.until_shown("The runs that this browser keeps").await;
    let read = "const links = [...document.querySelectorAll('.foot a')];
        const texts = links.map(async ({ href }) => (await (await fetch(href)).text()).split('\\n')[0]);
        return await Promise.all(texts)";
    assert_eq!(
        browser.js_async(read).await,
        json!(["# The method", "# The playground"])
    );
}

/// What is smaller than 24 px either way and has another target nearer than WCAG 2.5.8 allows. Links and buttons within a
/// sentence are exempt; a mark is as large as what a pointer hits of it.
const TOO_SMALL: &str = "const all = 'button, a[href], summary, [role=button], [data-point]';
    const targets = [...document.querySelectorAll(all)].map((one) => {
        const { left, right, top, bottom } = (one.querySelector('.c-hit') ?? one).getBoundingClientRect();
        return { one, left, right, top, bottom, x: (left + right) / 2, y: (top + bottom) / 2,
            isSmall: Math.min(right - left, bottom - top) < 23.9 };
    }).filter(({ one, left, right, top, bottom }) => right > left && bottom > top && right > 0
        && !one.closest('dialog') && one.checkVisibility());
    const isInSentence = ({ one }) => getComputedStyle(one).display.startsWith('inline')
        && [...one.parentElement.childNodes].some((near) => near.nodeType === 3 && near.data.trim());
    const isNear = (a, b) => b.isSmall ? Math.hypot(a.x - b.x, a.y - b.y) < 24
        : Math.hypot(Math.max(b.left - a.x, a.x - b.right, 0), Math.max(b.top - a.y, a.y - b.bottom, 0)) < 12;
    const failing = targets.filter((a) => a.isSmall && !isInSentence(a) && targets.some((b) => a !== b && isNear(a, b)));
    return [targets.length, failing.map(({ one, left, right, top, bottom }) =>
        `${Math.round(right - left)} x ${Math.round(bottom - top)}: ${one.outerHTML.slice(0, 160)}`)]";

#[tokio::test]
async fn a_finger_hits_what_can_be_pressed() {
    let (study, _stub) = ended();
    let browser = live(&study).await;
    on_telephone(&browser).await;
    let touch = json!({ "enabled": true, "maxTouchPoints": 5 });
    browser
        .devtools("Emulation.setTouchEmulationEnabled", touch)
        .await;
    let is_finger = "return matchMedia('(pointer: coarse)').matches";
    let mut found = Vec::new();
    for (page, shows) in [
        ("Live", "against the worst residual"),
        ("Result", "Copy prompt"),
        ("Runs", "Kept in this browser."),
        ("New study", "Examples to search on"),
    ] {
        browser.click(page).await;
        browser.until_shown(shows).await;
        assert_eq!(browser.js(is_finger).await, true);
        browser.js(UNFOLD).await;
        let small = browser.js(TOO_SMALL).await;
        assert!(small[0].as_u64() > Some(10), "{page}: {small}");
        let small = small[1].as_array().unwrap();
        found.extend(small.iter().map(|one| format!("{page}: {one}")));
        if page == "Live" {
            let marks = "return [...document.querySelectorAll('[data-point] .c-hit')]
                .map((one) => one.getBoundingClientRect().width).filter((width) => width < 23.9).length";
            assert_eq!(browser.js(marks).await, Value::from(0), "a mark is 24 px wide");
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
