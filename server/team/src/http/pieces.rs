//! Bodies that are written while somebody reads them.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Bytes of a piece, pieces that wait for a slow reader, and how long one may take nothing.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
const STALLED: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// Bytes a second that whoever reads takes, at least, over more than a minute.
const PACE: f64 = 16_384.0;

/// Whoever read a body has gone, or takes nothing.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads it any more")]
pub(super) struct Disconnected;

/// What is written goes to whoever reads a body.
pub(super) struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    /// How long the reader may still keep it waiting.
    patience: Mutex<Duration>,
}

/// A body, and where it is written. Unless it is ended there, whoever reads it sees it break off.
pub(super) fn body() -> (Pieces, Body) {
    let (sender, pieces) = mpsc::channel(WAITING);
    let body = futures::stream::unfold(Some(pieces), |pieces| async {
        let mut pieces: mpsc::Receiver<io::Result<Bytes>> = pieces?;
        match pieces.recv().await {
            Some(Ok(piece)) if piece.is_empty() => None,
            Some(Ok(piece)) => Some((Ok(piece), Some(pieces))),
            Some(Err(error)) => Some((Err(error), None)),
            None => Some((Err(io::Error::other("it broke off")), None)),
        }
    });
    let patience = Mutex::new(STALLED);
    (Pieces { sender, patience }, Body::from_stream(body))
}

impl Pieces {
    /// Sends in small pieces, of which each may take as long as [`STALLED`], and all together as long as [`PACE`] allows.
    pub(super) async fn send(&self, content: impl Into<Bytes>) -> Result<(), Disconnected> {
        let mut left = content.into();
        while !left.is_empty() {
            let piece = left.split_to(left.len().min(PIECE));
            let earned = Duration::from_secs_f64(piece.len() as f64 / PACE);
            let patience = *self.patience();
            let asked = Instant::now();
            let sent = tokio::time::timeout(patience, self.sender.send(Ok(piece))).await;
            if !matches!(sent, Ok(Ok(()))) {
                return Err(Disconnected);
            }
            *self.patience() = STALLED.min(patience.saturating_sub(asked.elapsed()) + earned);
        }
        Ok(())
    }

    fn patience(&self) -> MutexGuard<'_, Duration> {
        // Nothing panics while it is held.
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a whole body.
    pub(super) async fn end(self) {
        // Whoever has gone needs no end, and nor does whoever takes nothing.
        drop(tokio::time::timeout(STALLED, self.sender.send(Ok(Bytes::new()))).await);
    }

    /// The same for a thread that may wait.
    pub(super) fn blocking(self) -> Blocking {
        Blocking(self, Handle::current())
    }
}

/// Where a thread that may wait writes a body.
pub(super) struct Blocking(Pieces, Handle);

impl Blocking {
    /// Ends a whole body.
    pub(super) fn end(self) {
        self.1.block_on(self.0.end());
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.1.block_on(self.0.send(bytes.to_vec()));
        sent.map_err(|left| io::Error::new(io::ErrorKind::BrokenPipe, left))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
