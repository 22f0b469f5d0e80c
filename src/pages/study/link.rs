//! A study in an address, and out of it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capo_core::study::{Format, Study};

/// What stands before the study in the fragment.
const NAME: &str = "study=";

/// The fragment that carries a study, without its `#`. Keys are not part of a study.
///
/// # Errors
/// When the study has no TOML notation, in words.
pub(super) fn fragment(study: &Study) -> Result<String, String> {
    let toml = study.to_toml().map_err(|error| error.to_string())?;
    Ok(format!("{NAME}{}", URL_SAFE_NO_PAD.encode(toml)))
}

/// The study an address carries in its fragment, if it carries one.
///
/// # Errors
/// What is wrong with it.
pub(super) fn carried(fragment: &str) -> Option<Result<Study, String>> {
    let encoded = fragment.trim_start_matches('#').strip_prefix(NAME)?;
    let cut = "The link was cut short or changed on its way. Ask for it again, or for the study file.";
    Some(
        URL_SAFE_NO_PAD
            .decode(encoded.trim_end_matches('='))
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| cut.to_owned())
            .and_then(|toml| Study::parse(&toml, Format::Toml).map_err(|error| error.to_string())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_survives_the_way_through_an_address() {
        let study = crate::studies::help_desk().unwrap();
        let fragment = fragment(&study).unwrap();
        assert!(
            fragment
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "=-_".contains(letter))
        );
        assert_eq!(carried(&format!("#{fragment}")).unwrap().unwrap(), study);
    }

    #[test]
    fn other_fragments_carry_none_and_broken_ones_say_so() {
        assert!(carried("#models").is_none());
        assert!(carried("#study=%%").unwrap().unwrap_err().contains("cut short"));
        assert!(carried("#study=eA").unwrap().is_err());
    }
}
