//! Several methods and seeds of one study, begun together and compared.

use capo_browser::Browser;
use serde_json::json;

use crate::page::open;

/// Rollouts of every row of the table of methods, that of all together the last.
const ROLLOUTS: &str =
    "return [...document.querySelectorAll('section[aria-label=Methods] :is(tbody, tfoot) tr')]
    .map(({ cells }) => Number(cells[cells.length - 4].innerText.replaceAll(',', '')))";

/// The runs of the address.
const RUNS: &str = "return new URLSearchParams(location.search).get('runs')?.split(',').length ?? 0";

async fn count(browser: &Browser, selector: &str) -> u64 {
    let script = "return document.querySelectorAll(arguments[0]).length";
    let found = browser.js_with(script, vec![json!(selector)]).await;
    found.as_u64().unwrap()
}

#[tokio::test]
async fn two_methods_with_two_seeds_each_are_one_chart_one_table_and_one_bill() {
    let browser = open("/study").await;
    browser.type_in("Rollouts", "400").await;
    browser.click("Race methods…").await;
    browser.click_at("dialog input[value=gepa]").await;
    browser.type_in("Seeds of each", "11").await;
    browser.until_shown("Type a number of seeds, 1 to 10.").await;
    browser.type_in("Seeds of each", "2").await;
    browser.until_shown("Together at most 1,600 rollouts").await;
    browser
        .until_shown("the sum of what each run takes at most.")
        .await;
    browser.click("Start 4 runs").await;

    // Two work, two wait.
    let methods = "section[aria-label=Methods]";
    browser
        .until("some wait", async || {
            browser.text(methods).await.contains("queued")
        })
        .await;
    assert_eq!(browser.js(RUNS).await, 4);
    browser.until_shown("Help desk, GEPA, seed 1").await;
    browser.click("Runs").await;
    browser
        .until("they wait in the list, too", async || {
            browser.text("table.runs").await.contains("queued")
        })
        .await;
    assert!(!browser.text("table.runs").await.contains("Resume"));
    browser.js("history.back(); return true").await;
    browser
        .until("all have ended", async || {
            let shown = browser.text(methods).await;
            let goes_on = ["running", "queued", "not finished"];
            shown.contains("Together") && !goes_on.iter().any(|word| shown.contains(word))
        })
        .await;

    let shown = browser.text(methods).await;
    assert!(shown.contains("CAPO") && shown.contains("GEPA"), "{shown}");
    // CAPO keeps the thresholds with so few rollouts, GEPA does not.
    for words in ["four runs", "2 of 2", "0 of 2"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    let rollouts = browser.js(ROLLOUTS).await;
    let rollouts: Vec<u64> = serde_json::from_value(rollouts).unwrap();
    assert_eq!(rollouts.len(), 3, "{rollouts:?}");
    assert_eq!(rollouts[0] + rollouts[1], rollouts[2], "{rollouts:?}");
    assert!(
        rollouts[..2].iter().all(|of| (1..=800).contains(of)),
        "{rollouts:?}"
    );

    let figure = browser.text("#plate-A").await;
    assert!(
        figure.contains("Bands reach from the lowest to the highest seed"),
        "{figure}"
    );
    assert_eq!(count(&browser, "#plate-A .c-band").await, 2);
    let drawn =
        "return [...document.querySelectorAll('#plate-A polyline')].some((one) => one.points.length > 1)";
    assert_eq!(browser.js(drawn).await, true);
    browser.click("View as table").await;
    browser
        .until("it is a table too", async || {
            browser.text("#plate-A table").await.contains("seed")
        })
        .await;

    let best = "section[aria-labelledby=best-of-methods]";
    assert_eq!(count(&browser, &format!("{best} .prompt")).await, 2);
    assert!(count(&browser, &format!("{best} :is(ins, del)")).await > 0);

    // The address holds it: another look shows the same.
    browser.reload().await;
    browser
        .until("it is there again", async || {
            browser.js(ROLLOUTS).await == json!(rollouts)
        })
        .await;
}
