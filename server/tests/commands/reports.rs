//! `capo report`, and journals that gzip packed.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::Place;

/// What a built page has for reports, as far as the program looks at it.
const PAGE: &str = "<!doctype html><body><!-- journals --></body>";

/// A folder with a page and a finished run.
fn place() -> Place {
    let place = Place::new();
    place.optimize("study.toml", "run.jsonl");
    std::fs::create_dir(place.path("page")).unwrap();
    place.write("page/report.txt", PAGE);
    place
}

/// The journals in a report, by name.
fn journals(report: &str) -> Vec<(String, String)> {
    let blocks = report.split("<script type=\"application/gzip\" data-journal=\"");
    let journal = |block: &str| {
        let (name, rest) = block.split_once("\">").unwrap();
        let packed = STANDARD.decode(rest.split_once("</script>").unwrap().0).unwrap();
        let mut text = String::new();
        GzDecoder::new(packed.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        (name.to_owned(), text)
    };
    blocks.skip(1).map(journal).collect()
}

#[test]
fn a_report_has_the_journals_in_it_with_traces_only_when_asked() {
    let place = place();
    let whole = place.read("run.jsonl");
    let cut: Vec<&str> = whole.lines().take(12).collect();
    place.write("cut.jsonl", &(cut.join("\n") + "\n"));
    let ended = place.capo("report run.jsonl cut.jsonl --html --page page --out report.html");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .starts_with("report.html: 2 runs, 1 of them not ended, "),
        "{}",
        ended.stdout
    );
    let report = place.read("report.html");
    assert!(report.starts_with("<!doctype html><body><script") && report.ends_with("</body>"));
    let inside = journals(&report);
    let names: Vec<&str> = inside.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["run.jsonl", "cut.jsonl"]);
    let slim = &inside[0].1;
    assert_eq!(slim.lines().count(), whole.lines().count());
    assert!(whole.contains(r#""role":"user""#) && !slim.contains(r#""role":"user""#));

    // It is a journal still, of the same run.
    place.write("slim.jsonl", slim);
    for line in ["journal verify slim.jsonl", "compare run.jsonl slim.jsonl"] {
        let ended = place.capo(line);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    }
    let told = |journal: &str| {
        place
            .capo(&format!("report {journal}"))
            .stdout
            .replace(journal, "")
    };
    assert!(told("run.jsonl").contains("Best prompt"));
    assert_eq!(told("slim.jsonl"), told("run.jsonl"));
    assert!(told("cut.jsonl").contains("not ended"));

    // But nothing goes on from it.
    place.write("cut-slim.jsonl", &inside[1].1);
    for line in [
        "optimize study.toml --journal other.jsonl --reuse slim.jsonl",
        "optimize study.toml --journal cut-slim.jsonl",
    ] {
        let refused = place.capo(line);
        assert!(
            refused.stderr.contains("without traces"),
            "{line}: {}",
            refused.stderr
        );
    }

    let ended = place.capo("report run.jsonl --html --page page --traces");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(journals(&ended.stdout), [("run.jsonl".to_owned(), whole)]);
}

#[test]
fn a_report_replaces_files_but_no_journal_and_says_what_it_lacks() {
    let place = place();
    place.write("report.html", "an older one");
    assert_eq!(
        place
            .capo("report run.jsonl --html --page page --out report.html")
            .code,
        0
    );
    assert_eq!(journals(&place.read("report.html")).len(), 1);
    let before = place.read("run.jsonl");
    place.write("page/report.txt", "no place");
    std::fs::create_dir(place.path("empty")).unwrap();
    for (line, code, part) in [
        (
            "report run.jsonl --html --page page --out run.jsonl",
            64,
            "is a journal",
        ),
        (
            "report nowhere.jsonl --html --page page --out new.html",
            1,
            "is not there",
        ),
        (
            "report run.jsonl --html --page page --out new.html",
            1,
            "no place for journals",
        ),
        (
            "report run.jsonl --html --page empty --out new.html",
            1,
            "empty/report.txt cannot be read",
        ),
        ("report run.jsonl --out new.html", 64, "--html"),
    ] {
        let ended = place.capo(line);
        assert_eq!(ended.code, code, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{line}: {}", ended.stderr);
    }
    assert_eq!(place.read("run.jsonl"), before);
    assert!(!place.path("new.html").exists());
}

#[test]
fn a_packed_journal_is_read_as_it_was() {
    let place = place();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(place.read("run.jsonl").as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(place.path("run.jsonl.gz"), &packed).unwrap();
    std::fs::write(place.path("half.gz"), &packed[..packed.len() / 2]).unwrap();
    for line in ["show", "verify", "export --rows rollouts"] {
        let (plain, packed) = (
            place.capo(&format!("journal {line} run.jsonl")),
            place.capo(&format!("journal {line} run.jsonl.gz")),
        );
        assert_eq!(packed.code, 0, "{line}: {}", packed.stderr);
        assert_eq!(
            packed.stdout.replace("run.jsonl.gz", "run.jsonl"),
            plain.stdout,
            "{line}"
        );
    }
    for line in [
        "report run.jsonl --html --page page --out run.jsonl.gz",
        "journal export run.jsonl --out run.jsonl.gz",
    ] {
        let ended = place.capo(line);
        assert_eq!(ended.code, 64, "{line}: {}", ended.stderr);
    }
    assert_eq!(std::fs::read(place.path("run.jsonl.gz")).unwrap(), packed);
    for verb in ["show", "verify"] {
        let ended = place.capo(&format!("journal {verb} half.gz"));
        assert_eq!(ended.code, 1, "{verb}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("half.gz cannot be read"),
            "{}",
            ended.stderr
        );
    }
}
