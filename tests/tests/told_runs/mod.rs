//! What programs tell runs, and what a team server and the worker at the edge both answer.

use std::time::{Duration, SystemTime};

use capo_tests::program::wait_until;
use serde_json::{Value, json};

/// Asks as an editor of a project by method, path and body; returns status, and document or text.
pub(crate) type Ask<'a> = dyn Fn(&str, &str, &Value) -> (u16, Value) + 'a;

/// Tells runs of a study, which takes some seconds, all that they can be told, and what they cannot.
pub(crate) fn both_answer_so(ask: &Ask<'_>, project: &str, study: &str) {
    let runs = Runs { ask, project, study };
    let first = runs.start(json!({}));
    runs.have_files();
    runs.begins_when_it_is_to();
    runs.waits_and_is_told();
    runs.is_stopped_and_branched(&first);
}

/// Asks more often than one may where that is once a second, and comes back when it is told to.
pub(crate) fn both_refuse_who_asks_too_often(ask: &Ask<'_>) {
    let list = || ask("GET", "/api/projects", &Value::Null);
    let answers = std::iter::repeat_with(list).take(500);
    let answers: Vec<_> = answers.take_while(|(status, _)| *status == 200).collect();
    assert!((4..500).contains(&answers.len()), "{}", answers.len());
    wait_until("a refusal", || {
        let (status, problem) = list();
        let expected = json!({
            "type": "/problems/too-many-requests", "title": "Too many requests", "status": 429,
            "detail": "More requests came from this caller or address than one may send; try again in 1 s.",
            "retry_after": 1,
        });
        assert!(
            status == 200 || (status, &problem) == (429, &expected),
            "{status} {problem}"
        );
        status == 429
    });
    wait_until("an answer after a while", || list().0 == 200);
}

/// Has two runs where a member may have one at a time: the second waits for the end of the first.
pub(crate) fn both_carry_out_one_after_the_other(ask: &Ask<'_>, project: &str, study: &str) {
    let runs = Runs { ask, project, study };
    let first = runs.start(json!({}));
    runs.once(&first, "a worker", |run| run["stage"] == "running");
    let second = runs.start(json!({}));
    runs.once(&first, "a round", is_past_a_round);
    let waiting = runs.shown(&second);
    // Of one that is over by now, nothing is said.
    assert!(
        waiting["stage"] == "queued" && waiting["lines"] == 0 || runs.shown(&first)["stage"] == "ended",
        "{waiting}"
    );
    runs.at(&first, "POST", "/orders", &json!({ "order": "stop" }));
    runs.once(&first, "an end", |run| run["stage"] == "ended");
    runs.once(&second, "its turn", |run| run["lines"] != 0);
    runs.tell(&second, "stop", 200, "");
    runs.once(&second, "an end", |run| run["stage"] == "ended");
}

struct Runs<'a> {
    ask: &'a Ask<'a>,
    project: &'a str,
    study: &'a str,
}

/// Seconds since 1970, as RFC 3339.
fn moment(seconds: u64) -> String {
    let at = jiff::Timestamp::from_second(seconds.cast_signed()).unwrap();
    at.to_string()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_secs()
}

fn is_past_a_round(run: &Value) -> bool {
    run["progress"]["by_round"]
        .as_array()
        .is_some_and(|rounds| rounds.len() > 1)
}

impl Runs<'_> {
    fn new_run(&self, more: Value) -> (u16, Value) {
        let mut new = json!({ "name": "Told", "study": self.study });
        let Value::Object(more) = more else {
            panic!("{more} is no object");
        };
        new.as_object_mut().unwrap().extend(more);
        (self.ask)("POST", &format!("/api/projects/{}/runs", self.project), &new)
    }

    fn steers(&self, id: &str) -> usize {
        let (_, journal) = (self.ask)("GET", &format!("/api/runs/{id}/journal"), &Value::Null);
        let journal = journal.as_str().unwrap();
        journal.matches(r#"{"event":"steer""#).count()
    }

    fn start(&self, more: Value) -> String {
        let (status, run) = self.new_run(more);
        assert_eq!(status, 201, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    fn at(&self, id: &str, method: &str, rest: &str, body: &Value) -> (u16, Value) {
        (self.ask)(method, &format!("/api/runs/{id}{rest}"), body)
    }

    fn shown(&self, id: &str) -> Value {
        let (status, run) = self.at(id, "GET", "", &Value::Null);
        assert_eq!(status, 200, "{run}");
        run
    }

    fn once(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, || {
            // More often a server does not let anybody ask.
            std::thread::sleep(Duration::from_millis(50));
            let shown = self.shown(id);
            assert_ne!(shown["stage"], "failed", "{shown}");
            holds(&shown)
        });
        self.shown(id)
    }

    /// Gives an order, which is answered so.
    fn order(&self, id: &str, order: &Value, status: u16, said: &str) -> Value {
        let (got, answer) = self.at(id, "POST", "/orders", order);
        let words = answer["detail"].as_str().or(answer["stage"].as_str());
        assert!(
            got == status && words.unwrap_or_default().contains(said),
            "{order}: {got} {answer}"
        );
        answer
    }

    fn tell(&self, id: &str, word: &str, status: u16, said: &str) {
        self.order(id, &json!({ "order": word }), status, said);
    }

    /// A file of the project is given back as it came.
    fn have_files(&self) {
        let content = json!(["rows"]);
        // Of what is sent, as it is written.
        let sha256 = "091c188b70c8e8e93725273fa001f61cdc02c0172ccd2252e6f73e2bb02fd75d";
        let path = format!("/api/projects/{}/files/{sha256}", self.project);
        let given = || (self.ask)("GET", &format!("{path}/content"), &Value::Null);
        assert_eq!(given().0, 404);
        let (status, kept) = (self.ask)("PUT", &path, &content);
        assert_eq!((status, given()), (200, (200, content)), "{kept}");
    }

    fn begins_when_it_is_to(&self) {
        for wrong in [
            "tomorrow",
            "2026",
            "2026-11-26",
            "2026-11-26T18:00:00",
            "2026-02-30T18:00:00Z",
            "Thu, 26 Nov 2026 18:00:00 GMT",
        ] {
            let (status, refused) = self.new_run(json!({ "start_at": wrong }));
            let detail = refused["detail"].as_str().unwrap_or_default();
            assert!(
                status == 422 && detail.contains("RFC 3339"),
                "{wrong}: {status} {refused}"
            );
        }
        let at = now() + 3;
        let id = self.start(json!({ "start_at": moment(at) }));
        let shown = self.shown(&id);
        assert!(shown["stage"] == "queued" || now() >= at, "{shown}");
        self.once(&id, "its time", |run| run["lines"] != 0);
        assert!(now() >= at, "it began before it was to");
        self.tell(&id, "stop", 200, "");
        self.once(&id, "an end", |run| run["stage"] == "ended");
    }

    fn waits_and_is_told(&self) {
        let later = moment(now() + 3_600);
        let id = self.start(json!({ "start_at": later }));
        let steer = |order: &str, metric: &str| json!({ "order": order, "change": { "round": 0, "thresholds": { metric: 0.9 } } });
        self.order(&id, &steer("steer", "excess_tool"), 422, "excess_tool");
        self.order(&id, &steer("steer", "excess_tools"), 200, "queued");
        self.order(&id, &steer("withdraw", "excess_tools"), 200, "queued");
        let budget = json!({ "round": 0, "budget": { "rollouts": 9 } });
        for word in ["steer", "withdraw"] {
            let order = json!({ "order": word, "change": budget });
            self.order(&id, &order, 422, "resume the run");
        }
        let nothing = json!({ "order": "steer", "change": { "round": 0 } });
        self.order(&id, &nothing, 422, "Nothing is changed");

        let (status, run) = self.at(&id, "PATCH", "", &json!({ "name": "Later" }));
        assert_eq!((status, &run["name"]), (200, &json!("Later")));
        let (_, listed) = (self.ask)(
            "GET",
            &format!("/api/runs?project={}", self.project),
            &Value::Null,
        );
        assert_eq!(
            (&listed["runs"][0]["id"], &listed["runs"][0]["name"]),
            (&json!(id), &json!("Later"))
        );
        for wrong in [json!({ "name": " " }), json!({ "title": "x" })] {
            let (status, _) = self.at(&id, "PATCH", "", &wrong);
            assert_eq!(status, 422, "{wrong}");
        }

        self.tell(&id, "resume", 409, "goes on already");
        self.tell(&id, "pause", 200, "paused");
        self.tell(&id, "pause", 409, "not under way");
        self.tell(&id, "stop", 200, "ended");
        self.tell(&id, "stop", 409, "not under way");
        self.tell(&id, "fly", 422, "fly");
        // Whoever resumes it does not wait for its time, and nothing is left of what was withdrawn.
        self.tell(&id, "resume", 200, "");
        self.once(&id, "a round", is_past_a_round);
        assert_eq!(self.steers(&id), 0);
        self.tell(&id, "stop", 200, "");
        let ended = self.once(&id, "an end", |run| run["stage"] == "ended");
        assert_eq!(ended["status"], "stopped");
        let (status, _) = self.at(&id, "DELETE", "", &Value::Null);
        assert_eq!(status, 204);
        for (method, rest) in [
            ("GET", ""),
            ("PATCH", ""),
            ("DELETE", ""),
            ("POST", "/orders"),
            ("GET", "/journal"),
        ] {
            let body = if method == "PATCH" {
                json!({ "name": "x" })
            } else {
                json!({ "order": "stop" })
            };
            let body = if matches!(method, "GET" | "DELETE") {
                Value::Null
            } else {
                body
            };
            assert_eq!(self.at(&id, method, rest, &body).0, 404, "{method} {rest}");
        }
    }

    fn is_stopped_and_branched(&self, first: &str) {
        let first_ended = self.once(first, "an end", |run| run["stage"] == "ended");
        let branch = |more: Value| {
            let mut new = json!({ "name": "Stricter", "round": 1, "start": false });
            new.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            self.at(first, "POST", "/branches", &new)
        };
        for (more, said) in [
            (json!({ "round": 99 }), "round"),
            (
                json!({ "change": { "round": 1, "budget": { "rollouts": 9 } } }),
                "resume the run",
            ),
            (
                json!({ "change": { "round": 1, "thresholds": { "excess_tool": 0.1 } } }),
                "excess_tool",
            ),
        ] {
            let (status, refused) = branch(more.clone());
            let detail = refused["detail"].as_str().unwrap_or_default();
            assert!(
                status == 422 && detail.contains(said),
                "{more}: {status} {refused}"
            );
        }
        let (status, stricter) =
            branch(json!({ "change": { "round": 1, "thresholds": { "excess_tools": 0.1 } } }));
        assert_eq!(status, 201, "{stricter}");
        assert_eq!(stricter["stage"], "paused");
        assert_eq!(
            stricter["origin"],
            json!({ "from": "branch", "run": first, "round": 1 })
        );
        let id = stricter["id"].as_str().unwrap();
        let lines = stricter["lines"].as_u64().unwrap();
        assert!(
            lines > 0 && lines < first_ended["lines"].as_u64().unwrap(),
            "{stricter}"
        );
        self.tell(id, "resume", 200, "");
        let ended = self.once(id, "an end", |run| run["stage"] == "ended");
        let rounds = |run: &Value| run["progress"]["by_round"].as_array().unwrap().clone();
        assert_eq!(rounds(&ended)[0], rounds(&first_ended)[0]);
        assert_eq!(rounds(&ended).len(), rounds(&first_ended).len());
        assert_eq!(self.steers(id), 1);
        // One that starts at once, and cannot be deleted for that.
        let (status, at_once) = branch(json!({ "start": true }));
        assert_eq!((status, &at_once["stage"]), (201, &json!("queued")));
        let id = at_once["id"].as_str().unwrap();
        self.once(id, "a worker", |run| run["stage"] == "running");
        let (status, refused) = self.at(id, "DELETE", "", &Value::Null);
        assert_eq!(status, 409, "{refused}");
        self.tell(id, "stop", 200, "");
        self.once(id, "an end", |run| run["stage"] == "ended");
    }
}
