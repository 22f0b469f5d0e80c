//! Passwords: which are taken, and how they are kept.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use zxcvbn::feedback::Feedback;

/// Characters of a password, at least.
pub const LEAST: usize = 10;

/// Bytes of a password, at most: a longer one only costs time.
pub const MOST: usize = 256;

/// Guesses that a password must withstand, as estimated by zxcvbn (Wheeler 2016) with its lists of common passwords, names
/// and words: 10⁸, a day of an attacker who is slowed down to a thousand a second.
const GUESSES: u64 = 100_000_000;

/// Why a password is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Weak {
    /// Too short.
    #[error("a password has at least {LEAST} characters, and this one has {0}")]
    Short(usize),
    /// Too long.
    #[error("a password has at most {MOST} bytes, and this one has {0}")]
    Long(usize),
    /// Easily guessed.
    #[error("this password is easily guessed: {0}")]
    Common(String),
}

/// Refuses a password that is too short, or that others guess from lists of common ones, from words and patterns, or from
/// the name of its owner.
///
/// # Errors
/// When it is one of these.
pub fn check(password: &str, name: &str) -> Result<(), Weak> {
    let characters = password.chars().count();
    if characters < LEAST {
        return Err(Weak::Short(characters));
    }
    if password.len() > MOST {
        return Err(Weak::Long(password.len()));
    }
    let found = zxcvbn::zxcvbn(password, &[name, "capo"]);
    if found.guesses() >= GUESSES {
        return Ok(());
    }
    let feedback = found.feedback();
    let warning = feedback
        .and_then(Feedback::warning)
        .map(|warning| warning.to_string());
    let mut why = warning.unwrap_or_else(|| "it is a common word or pattern.".into());
    why.push_str(" Four words that have nothing to do with each other make a good one");
    Err(Weak::Common(why))
}

/// What is kept of a password: Argon2id with 19 MiB, two passes and one lane (OWASP's recommendation), in PHC format with
/// a salt of its own.
pub fn hash(password: &str) -> String {
    let hash = argon2().hash_password(password.as_bytes());
    hash.expect("parameters and length are valid, and the system has random numbers")
        .to_string()
}

/// Whether it is the password that was kept. Takes as long when nothing was kept or it cannot be it, so that the time does not tell whether
/// there is such a member.
pub fn verify(password: &str, kept: Option<&str>) -> bool {
    let kept = kept.filter(|_| password.len() <= MOST);
    let parsed = kept.and_then(|kept| PasswordHash::new(kept).ok());
    let Some(parsed) = parsed else {
        let _ = hash("a password that nobody has");
        return false;
    };
    argon2().verify_password(password.as_bytes(), &parsed).is_ok()
}

fn argon2() -> Argon2<'static> {
    let parameters = Params::new(19 * 1024, 2, 1, None).expect("in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_known_again_and_no_other() {
        let kept = hash("correct horse battery staple");
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        assert!(verify("correct horse battery staple", Some(&kept)));
        assert!(!verify("correct horse battery stapler", Some(&kept)));
        assert!(!verify("correct horse battery staple", None));
        assert_ne!(hash("correct horse battery staple"), kept, "the salt is its own");
    }

    #[test]
    fn what_others_guess_is_refused() {
        assert_eq!(check("kurz", "ada"), Err(Weak::Short(4)));
        assert_eq!(check(&"x".repeat(300), "ada"), Err(Weak::Long(300)));
        for common in [
            "password123",
            "qwertyuiop",
            "1234567890",
            "adalovelace1",
            "letmein2024",
        ] {
            let refused = check(common, "adalovelace").unwrap_err();
            assert!(matches!(refused, Weak::Common(_)), "{common}: {refused}");
        }
        for good in [
            "correct horse battery staple",
            "kP9#vLq2!xTz",
            "ein langer satz über enten",
        ] {
            assert_eq!(check(good, "ada"), Ok(()), "{good}");
        }
    }
}
