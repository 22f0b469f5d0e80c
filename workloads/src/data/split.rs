//! The split of examples: which the search sees, and which are held out.

use sha2::{Digest, Sha256};

use super::{DataSettings, Example, Examples};
use crate::settings::BuildError;

/// The examples in the order in which splits take them. A random order follows from each example's
/// id and the seed, so a line added to the file leaves the others in the same order.
pub(super) fn ordered(settings: &DataSettings, mut examples: Vec<Example>) -> Vec<Example> {
    if settings.shuffle {
        examples.sort_by_cached_key(|example| {
            let mut hash = Sha256::new();
            hash.update(settings.seed.to_le_bytes());
            hash.update(example.id.as_bytes());
            <[u8; 32]>::from(hash.finalize())
        });
    }
    examples
}

/// The first `count` examples, or all of them.
pub(super) fn take(
    mut examples: Vec<Example>,
    count: Option<usize>,
    key: &str,
    file: &str,
) -> Result<Vec<Example>, BuildError> {
    if let Some(count) = count {
        if count > examples.len() {
            return Err(too_many(key, count, examples.len(), file));
        }
        examples.truncate(count);
    }
    Ok(examples)
}

fn too_many(key: &str, wanted: usize, available: usize, file: &str) -> BuildError {
    BuildError::setting(
        key,
        format!("{wanted} examples are asked for, but {file} leaves {available}"),
    )
}

/// Both splits out of one file: what the search sees first.
pub(super) fn one_file(
    settings: &DataSettings,
    key: &str,
    mut examples: Vec<Example>,
) -> Result<Examples, BuildError> {
    let Some(evaluate) = settings.evaluate else {
        return Err(BuildError::setting(
            format!("{key}.evaluate"),
            "say how many examples to hold out (0 for none), or name a file with `evaluate_data`",
        ));
    };
    let available = examples.len();
    if evaluate > available {
        return Err(too_many(
            &format!("{key}.evaluate"),
            evaluate,
            available,
            &settings.data,
        ));
    }
    let optimize = settings.optimize.unwrap_or(available - evaluate);
    if optimize > available - evaluate {
        return Err(BuildError::setting(
            format!("{key}.optimize"),
            format!(
                "{optimize} and {evaluate} held-out examples are asked for, but {} leaves {available}",
                settings.data
            ),
        ));
    }
    let mut rest = examples.split_off(optimize);
    rest.truncate(evaluate);
    Ok(Examples {
        optimize: examples,
        evaluate: rest,
    })
}
