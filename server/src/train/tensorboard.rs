//! Curves for TensorBoard: a file of records, each an `Event` of its protocol buffers.
//!
//! Sources: `tensorflow/core/util/event.proto` and `tensorflow/core/framework/summary.proto` for the messages, of
//! which only scalars and starts are written, and `tensorflow/core/lib/io/record_writer.cc` for the records.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message as _;

/// The curves cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: the curves for TensorBoard cannot be written: {source}", path.display())]
pub struct TensorBoardError {
    path: PathBuf,
    source: io::Error,
}

/// One file of curves. A training that is resumed begins another one in the same folder.
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: File,
}

impl TensorBoard {
    /// Begins a file in a folder, which is made if it is not there. TensorBoard then drops the points from
    /// `first_step` on that earlier files hold: a training that was killed makes those steps again.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(folder: &Path, first_step: u64) -> Result<Self, TensorBoardError> {
        let now = seconds();
        let name = format!("events.out.tfevents.{:.6}.{}.capo", now, std::process::id());
        let path = folder.join(name);
        let file = std::fs::create_dir_all(folder).and_then(|()| File::create_new(&path));
        let failed = |source| TensorBoardError {
            path: path.clone(),
            source,
        };
        let mut board = Self {
            file: file.map_err(failed)?,
            path,
        };
        board.write(0, What::FileVersion("brain.Event:2".to_owned()))?;
        let status = SessionStatus::Start.into();
        board.write(first_step, What::SessionLog(SessionLog { status }))?;
        Ok(board)
    }

    /// Adds a point to each of some curves.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn scalars<N: Into<String>>(
        &mut self,
        step: u64,
        scalars: impl IntoIterator<Item = (N, f64)>,
    ) -> Result<(), TensorBoardError> {
        let value = |(tag, number): (N, f64)| Value {
            tag: tag.into(),
            simple_value: Some(number as f32),
        };
        let value = scalars.into_iter().map(value).collect();
        self.write(step, What::Summary(Summary { value }))
    }

    fn write(&mut self, step: u64, what: What) -> Result<(), TensorBoardError> {
        let event = Event {
            wall_time: seconds(),
            step: i64::try_from(step).unwrap_or(i64::MAX),
            what: Some(what),
        };
        self.file
            .write_all(&record(&event.encode_to_vec()))
            .map_err(|source| TensorBoardError {
                path: self.path.clone(),
                source,
            })
    }
}

/// Seconds since the Unix epoch.
fn seconds() -> f64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// Length and its checksum, bytes and their checksum.
fn record(bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u64).to_le_bytes();
    [
        &length[..],
        &masked_checksum(&length).to_le_bytes(),
        bytes,
        &masked_checksum(bytes).to_le_bytes(),
    ]
    .concat()
}

/// CRC32C, masked so that checksums of what holds checksums stay good ones.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[derive(Clone, PartialEq, prost::Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

#[derive(Clone, PartialEq, prost::Message)]
struct SessionLog {
    #[prost(enumeration = "SessionStatus", tag = "1")]
    status: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum SessionStatus {
    Unspecified = 0,
    Start = 1,
    Stop = 2,
    Checkpoint = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a file whose checksums hold.
    fn read(mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
            let (checksum, rest) = rest.split_first_chunk::<4>().unwrap();
            assert_eq!(u32::from_le_bytes(*checksum), masked_checksum(length));
            let (data, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
            let (checksum, rest) = rest.split_first_chunk::<4>().unwrap();
            assert_eq!(u32::from_le_bytes(*checksum), masked_checksum(data));
            events.push(Event::decode(data).unwrap());
            bytes = rest;
        }
        events
    }

    #[test]
    fn curves_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut board = TensorBoard::create(&folder.path().join("tensorboard"), 3).unwrap();
        board.scalars(3, [("loss", 0.5), ("gradient norm", 0.0)]).unwrap();
        let events = read(&std::fs::read(&board.path).unwrap());
        assert_eq!(
            events[0].what,
            Some(What::FileVersion("brain.Event:2".to_owned()))
        );
        let start = What::SessionLog(SessionLog {
            status: SessionStatus::Start.into(),
        });
        assert_eq!((events[1].step, &events[1].what), (3, &Some(start)));
        assert_eq!(events[2].step, 3);
        let Some(What::Summary(summary)) = &events[2].what else {
            panic!("no summary")
        };
        let found: Vec<_> = summary
            .value
            .iter()
            .map(|value| (value.tag.as_str(), value.simple_value))
            .collect();
        assert_eq!(found, [("loss", Some(0.5)), ("gradient norm", Some(0.0))]);
    }

    #[test]
    fn checksums_are_those_of_the_format() {
        // The check value of CRC-32C, and what masking makes of it.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(
            masked_checksum(b"123456789"),
            0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8)
        );
    }
}
