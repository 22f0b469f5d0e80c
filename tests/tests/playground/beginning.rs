//! From the first page to a run of one's own, as a stranger goes.

use capo_browser::{Browser, Key};
use capo_tests::stub::{Answer, Question, Stub};
use capo_tests::study::Study;

use crate::SECRET;
use crate::page::open;
use crate::team_runs::pick;

/// The most clicks, and the most characters, that a first run of one's own may take.
const CLICKS: usize = 10;
const CHARACTERS: usize = 160;

/// What a stranger does, counted.
struct Stranger {
    browser: Browser,
    clicks: usize,
    characters: usize,
}

impl Stranger {
    async fn click(&mut self, name: &str) {
        self.browser.click(name).await;
        self.clicks += 1;
    }

    /// A click into the field, and its text.
    async fn type_in(&mut self, label: &str, text: &str) {
        self.browser.type_in(label, text).await;
        self.clicks += 1;
        self.characters += text.chars().count();
    }
}

#[tokio::test]
async fn a_stranger_begins_a_run_of_their_own_with_few_clicks_and_little_typing() {
    let models = Study::new("http://unused").models();
    let stub = Stub::start_with(std::time::Duration::ZERO, Some(SECRET), move |question, _| {
        if question.is_rollout() {
            Answer::Text("positive".to_owned())
        } else {
            models.answer(question)
        }
    });
    let mut stranger = Stranger {
        browser: open("/").await,
        clicks: 0,
        characters: 0,
    };
    stranger.click("New study").await;
    stranger.click("Classify").await;
    let rows = "question,answer\nGreat bike,positive\nFlat tyre,negative\nIt squeaks,negative";
    stranger.type_in("Paste rows here", rows).await;
    stranger.browser.press(Key::Tab).await;
    stranger.browser.until_shown("3 rows").await;
    let provider = "OpenAI-compatible server";
    pick(&stranger.browser, "Provider of task agent", provider).await;
    // Into the list, and on its option.
    stranger.clicks += 2;
    stranger.type_in("Base URL of task agent", &stub.base_url).await;
    stranger.type_in("Model of task agent", "stub").await;
    stranger.type_in("Key of task agent", SECRET).await;
    stranger.click("Run study").await;
    stranger.browser.until_shown("Round 1 closed").await;
    // The one model wrote the prompts, too.
    assert!(stub.request_log().answered(Question::is_rewrite) > 0);
    let (clicks, characters) = (stranger.clicks, stranger.characters);
    println!("a run of one's own: {clicks} clicks, {characters} characters");
    assert!(
        clicks <= CLICKS && characters <= CHARACTERS,
        "{clicks}, {characters}"
    );
}
