//! Paths in the folder of a training, and its removal.

use std::path::{Component, Path};

/// The file of its study, beside the data that this names.
pub(super) const STUDY_FILE: &str = "study.toml";

/// Whether a path names something below the folder that it starts from, and not the study, by whatever letters.
pub(crate) fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty()
        && !path.eq_ignore_ascii_case(STUDY_FILE)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Removes the folder of a training that is no more.
pub(crate) async fn forget(folder: &Path) {
    let folder = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::error!(folder = %folder.display(), %error, "the folder of a training could not be removed");
        }
        _ => {}
    });
    // A server that ends leaves it there.
    let _ = removed.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lies_below_the_study() {
        for below in ["rows.csv", "data/rows.csv"] {
            assert!(is_below(below), "{below}");
        }
        for elsewhere in [
            "",
            "../rows.csv",
            "/etc/passwd",
            "data/../../rows.csv",
            "./rows.csv",
            "study.toml",
            "Study.TOML",
        ] {
            assert!(!is_below(elsewhere), "{elsewhere}");
        }
    }
}
