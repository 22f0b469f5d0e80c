//! The data that tests read from outside the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::steps::Step;

/// What a step without them has to tell, for nobody sees what a test that passes prints: the tests
/// that read these data checked nothing. With `CI` set those tests fail instead.
pub(super) fn note(step: Step, root: &Path) -> Option<String> {
    if !matches!(step, Step::Native | Step::Wasm | Step::EndToEnd) {
        return None;
    }
    let folder = find(root);
    (!folder.is_dir()).then(|| {
        format!(
            "but tests on shared data checked nothing: there is no {}; set CAPO_SHARED",
            folder.display()
        )
    })
}

/// Where they lie.
pub(crate) fn find(root: &Path) -> PathBuf {
    folder(root, std::env::var_os("CAPO_SHARED"))
}

/// As the environment says, else beside the repository.
fn folder(root: &Path, named: Option<OsString>) -> PathBuf {
    named.map_or_else(|| root.join("../shared"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lie_where_the_environment_says_else_beside_the_repository() {
        assert_eq!(folder(Path::new("/a/b"), None), Path::new("/a/b/../shared"));
        assert_eq!(folder(Path::new("/a/b"), Some("/c".into())), Path::new("/c"));
    }

    #[test]
    fn only_steps_that_run_such_tests_tell() {
        assert_eq!(note(Step::Format, Path::new("/nowhere")), None);
    }
}
