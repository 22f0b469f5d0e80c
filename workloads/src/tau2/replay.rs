//! A conversation's effect on the world, made again.

use serde_json::Value;

use super::environment::{World, call_any, changes};
use super::python;
use super::tool::ToolError;
use super::trajectory::{Answered, Trajectory, Unpaired};

/// Why a conversation cannot be made again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// It does not hold an answer for each call.
    #[error(transparent)]
    Unpaired(#[from] Unpaired),
    /// A call came to something else.
    #[error("{tool} answered {now:?}, and not {then:?}")]
    Differs {
        /// The tool.
        tool: String,
        /// What it came to.
        now: String,
        /// What the conversation holds.
        then: String,
    },
    /// The two sides cannot agree at the end.
    #[error("{0}")]
    Sync(#[from] ToolError),
}

/// Makes the calls of a conversation again that change the world, failed ones too.
///
/// # Errors
/// When one of them comes to something else than it did.
pub fn replay<W: World>(world: &mut W, trajectory: &Trajectory) -> Result<(), ReplayError> {
    for answered in trajectory.answered()? {
        let Answered {
            by,
            call,
            content,
            error,
        } = answered;
        if !changes::<W>(&call.name) {
            continue;
        }
        let now = call_any(world, by, &call.name, &call.arguments);
        // Why a call fails may be said in other words than Python's.
        let is_same = now.error == error && (error || says_the_same(&now.content, content));
        if !is_same {
            return Err(ReplayError::Differs {
                tool: call.name.clone(),
                now: now.content,
                then: content.to_owned(),
            });
        }
    }
    world.sync()?;
    Ok(())
}

/// Whether two results are the same text, or the same JSON.
fn says_the_same(now: &str, then: &str) -> bool {
    let parse = |text| serde_json::from_str::<Value>(text).ok();
    match (parse(now), parse(then)) {
        (Some(now), Some(then)) => python::equal(&now, &then),
        _ => now == then,
    }
}
