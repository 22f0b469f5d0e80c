//! Whether a server counts what it does, and who may read that.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use capo_team::Metrics;
use capo_team::secret::Secret;

/// How often what was measured is summed up.
const SUM_UP: Duration = Duration::from_secs(5);

/// Characters of a token, at least: it stands on a port that others reach.
const SHORTEST: usize = 16;

/// Whether and for whom a server counts.
#[derive(Debug, Clone, Default)]
pub(crate) enum Measured {
    /// It does not.
    #[default]
    No,
    /// For programs on its machine.
    Here,
    /// For who shows the token in this file.
    WithToken(PathBuf),
}

/// Why it cannot count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsError {
    /// The file of the token.
    #[error("the token for /metrics {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// It holds no token.
    #[error("the token for /metrics {}: it must be one line of at least {SHORTEST} visible ASCII characters", .0.display())]
    NoToken(PathBuf),
    /// Something else in this process counts.
    #[error("/metrics: {0}")]
    Start(String),
}

impl Measured {
    /// Counts from now on, if it is to.
    ///
    /// # Errors
    /// When the token cannot be read, or is none.
    pub(super) fn start(&self) -> Result<Option<Metrics>, MetricsError> {
        let token = match self {
            Self::No => return Ok(None),
            Self::Here => None,
            Self::WithToken(path) => {
                let text = std::fs::read_to_string(path).map_err(|source| MetricsError::File {
                    path: path.clone(),
                    source,
                })?;
                let text = text.trim();
                if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(MetricsError::NoToken(path.clone()));
                }
                Some(Secret::presented(text))
            }
        };
        Metrics::start(token.as_ref())
            .map(Some)
            .map_err(MetricsError::Start)
    }
}

/// Sums up what was measured, for as long as it is polled.
pub(super) async fn sum_up(metrics: Option<&Metrics>) {
    let Some(metrics) = metrics else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(SUM_UP).await;
        metrics.sum_up();
    }
}
