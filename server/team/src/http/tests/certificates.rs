//! What runs tested, listed over HTTP.

use capo_api::{CertificatePage, CertificateShown, RunStage};
use capo_core::journal::{Event, parse_line};

use super::runs::Worker;
use super::*;
use crate::store::tests::on_each_database;

impl Team {
    async fn certificates(&self, query: &str) -> CertificatePage {
        let path = format!("/api/projects/alpha/certificates{query}");
        let (status, page) = self.ask(Who::Viewer, "GET", &path, Value::Null).await;
        assert_eq!(status, 200, "{page}");
        serde_json::from_value(page).expect("a page")
    }
}

on_each_database!(what_runs_tested_is_listed_with_the_versions_of_that_text);
async fn what_runs_tested_is_listed_with_the_versions_of_that_text(store: Store) {
    let team = Team::on(store).await;
    let study = STUDY.replace("evaluate = 6", "evaluate = 40") + "[confirm]\nexamples = 20\n";
    let run = team.start(&study).await;
    assert_eq!(team.certificates("").await, CertificatePage::default());
    let worker = Worker::of(&team);
    let shown = team.ended(&run).await;
    worker.end().await;
    let journal = team.journal(&run, 0).await;
    let Event::Finished(finished) = parse_line(journal.last().unwrap(), journal.len()).unwrap() else {
        panic!("the run did not end");
    };
    let mut tested = finished.certificates.clone();
    tested.reverse();
    assert!(!tested.is_empty());
    let of = |page: &CertificatePage, run: &str| -> Vec<CertificateShown> {
        let all = page.certificates.iter();
        all.filter(|one| one.run == run).cloned().collect()
    };
    let first = of(&team.certificates("").await, &run);
    let certificates: Vec<_> = first.iter().map(|one| one.certificate.clone()).collect();
    assert_eq!(certificates, tested, "what was tested last comes first");
    assert_eq!(
        (first[0].run_name.as_str(), json!(first[0].at)),
        ("Help desk", shown["touched_at"].clone())
    );

    // A version of this text, and where one of another text is not.
    let named = json!({ "run": run, "candidate": tested[0].candidate.to_string() });
    let path = "/api/projects/alpha/prompts/greeting/versions";
    let (status, added) = team.ask(Who::Editor, "POST", path, named).await;
    assert_eq!(status, 201, "{added}");
    let listed = of(&team.certificates("").await, &run);
    let versions: Vec<_> = listed[0]
        .versions
        .iter()
        .map(|one| (one.prompt.as_str(), one.version))
        .collect();
    assert_eq!(versions, [("greeting", 2)]);
    assert!(added["text"].as_str().unwrap().starts_with(&listed[0].prompt));
    assert!(listed[1..].iter().all(|one| one.versions.is_empty()));

    // What was pushed, and what came to its end before such was kept.
    team.clock.fetch_add(1, Relaxed);
    let (status, pushed) = team.push("", journal.join("\n")).await;
    assert_eq!(status, 201, "{pushed}");
    let ada = team.store.member("ada").await.unwrap();
    let (alpha, _) = team.store.project(&ada, "alpha").await.unwrap();
    let id = pushed["id"].as_str().unwrap();
    let earlier = AddedRun {
        name: "Earlier".into(),
        study: study.clone(),
        method: "capo".into(),
        objective: "success".into(),
        stage: Some(RunStage::Ended),
        status: Some(finished.status),
        lines: journal.clone(),
        created_at: Some(NOW - DAY),
        ..AddedRun::default()
    };
    let earlier = team
        .store
        .add_run(&by("ada"), &alpha, &ada, earlier)
        .await
        .unwrap();
    for _ in 0..2 {
        let page = team.certificates("").await;
        let runs = page.certificates.chunks(tested.len());
        let runs: Vec<&str> = runs.map(|of_run| of_run[0].run.as_str()).collect();
        assert_eq!(runs, [id, run.as_str(), earlier.id.as_str()]);
        for one in [id, earlier.id.as_str()] {
            let certificates = of(&page, one).into_iter().map(|one| one.certificate);
            assert_eq!(certificates.collect::<Vec<_>>(), tested);
        }
    }

    // Journals that cannot be read, of which one request reads ten and that are read again by the next.
    for number in 0..11 {
        let unreadable = AddedRun {
            name: format!("Unreadable {number}"),
            study: study.clone(),
            stage: Some(RunStage::Ended),
            status: Some(finished.status),
            lines: vec!["{}".into()],
            created_at: Some(NOW - 2 * DAY),
            ..AddedRun::default()
        };
        let added = team.store.add_run(&by("ada"), &alpha, &ada, unreadable).await;
        added.unwrap();
    }
    for _ in 0..2 {
        let page = team.certificates("").await;
        assert_eq!(page.certificates.len(), 3 * tested.len());
        let next = format!("?before={}", page.before.expect("not all were read"));
        assert_eq!(team.certificates(&next).await, CertificatePage::default());
    }
    let runs = team.store.testing_runs(&alpha, None, 100).await.unwrap();
    let unread = runs.iter().filter(|run| run.tested.is_none());
    assert_eq!((unread.count(), runs.len()), (11, 14));

    let after = format!("?before={}.{run}", capo_hosted::millis(&first[0].at).unwrap());
    let rest = team.certificates(&after).await;
    assert!(rest.certificates.iter().all(|one| one.run == earlier.id));
    assert_eq!(rest.certificates.len(), tested.len());
    let path = "/api/projects/alpha/certificates?before=x";
    assert_eq!(team.ask(Who::Viewer, "GET", path, Value::Null).await.0, 422);

    // One that goes on has tested nothing yet.
    let resume = json!({ "order": "resume" });
    let path = format!("/api/runs/{run}/orders");
    assert_eq!(team.ask(Who::Editor, "POST", &path, resume).await.0, 200);
    assert_eq!(of(&team.certificates("").await, &run), []);
}
