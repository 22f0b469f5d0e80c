//! A small run in an address, and out of it.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capo_core::study::Study;
use flate2::read::GzDecoder;
use leptos::prelude::window;

use crate::download;
use crate::live::{Run, document_meta};
use crate::storage::is_report;

/// What stands before the run in the fragment.
const NAME: &str = "run=";

/// The longest run that is put in an address, and taken out of one, in characters.
const MOST: usize = 16_000;

/// Bytes that it may unpack to; no more are unpacked.
const MOST_UNPACKED: u64 = 4 * 1024 * 1024;

/// Journals of more lines are not tried.
const MOST_LINES: u64 = 2_000;

/// The address at which this page shows a run that has ended, without its traces; none where that is too long, or its study
/// may hold a key.
pub async fn link(run: Run) -> Option<String> {
    let is_small = run.peek(|folded| {
        let study = folded.state.study().filter(|_| folded.state.finished().is_some());
        folded.lines() <= MOST_LINES && study.is_some_and(|event| is_free_of_keys(&event.study))
    });
    if !is_small || is_report() {
        return None;
    }
    let fragment = fragment(&download::packed_slim_journal(run).await.ok()?)?;
    let origin = window().location().origin().ok()?;
    Some(format!("{origin}{}runs#{fragment}", document_meta("capo-base")?))
}

/// A study of this page holds none. Journals come from elsewhere, too.
fn is_free_of_keys(study: &Study) -> bool {
    capo_models::check_tables(&study.models).is_ok() && capo_workloads::check_written(&study.workload).is_ok()
}

/// The fragment that carries a packed journal, without its `#`, where that is taken out of it again.
fn fragment(packed: &[u8]) -> Option<String> {
    let fragment = format!("{NAME}{}", URL_SAFE_NO_PAD.encode(packed));
    matches!(carried(&fragment), Some(Ok(_))).then_some(fragment)
}

/// The journal that an address carries in its fragment, if it carries one.
///
/// # Errors
/// What is wrong with it.
pub fn carried(fragment: &str) -> Option<Result<Vec<u8>, &'static str>> {
    let encoded = fragment.trim_start_matches('#').strip_prefix(NAME)?;
    Some(unpacked(encoded).ok_or(
        "It was cut short or changed on its way, or is longer than any that this page makes. Ask for it again, or for \
         the journal.",
    ))
}

fn unpacked(encoded: &str) -> Option<Vec<u8>> {
    let encoded = Some(encoded).filter(|encoded| encoded.len() <= MOST)?;
    let packed = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let mut journal = Vec::new();
    let mut bounded = GzDecoder::new(&packed[..]).take(MOST_UNPACKED + 1);
    let length = bounded.read_to_end(&mut journal).ok()?;
    (length as u64 <= MOST_UNPACKED).then_some(journal)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn packed(journal: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(journal).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_journal_survives_the_way_through_an_address() {
        let fragment = fragment(&packed(b"a journal")).unwrap();
        assert_eq!(carried(&format!("#{fragment}")), Some(Ok(b"a journal".to_vec())));
        assert_eq!(carried("#pool"), None);
        for changed in ["#run=%%", "#run=bm8gam91cm5hbAo", &fragment[..fragment.len() - 4]] {
            assert!(
                carried(changed).unwrap().unwrap_err().contains("cut short"),
                "{changed}"
            );
        }
    }

    #[test]
    fn what_is_too_long_packed_or_not_is_neither_made_nor_taken() {
        let bomb = packed(&vec![b'a'; MOST_UNPACKED as usize + 1]);
        let noise: Vec<u8> = (0..MOST as u32)
            .flat_map(|one| one.wrapping_mul(2_654_435_761).to_be_bytes())
            .collect();
        for long in [&bomb, &packed(&noise)] {
            assert_eq!(fragment(long), None);
        }
        assert!(bomb.len() < MOST / 2, "it is refused for what it unpacks to");
        assert!(fragment(&packed(&vec![b'a'; MOST_UNPACKED as usize])).is_some());
    }

    #[test]
    fn a_study_that_may_hold_a_key_goes_into_no_address() {
        let mut study = crate::studies::help_desk().unwrap();
        assert!(is_free_of_keys(&study));
        study.workload = [
            ("kind".to_owned(), json!("external")),
            ("endpoint".to_owned(), json!("https://me:sk-secret@agent.example")),
        ]
        .into_iter()
        .collect();
        assert!(!is_free_of_keys(&study));
    }
}
