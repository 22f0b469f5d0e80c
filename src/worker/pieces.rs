//! Lines of a file that is read piece by piece.

use js_sys::Uint8Array;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

/// Bytes read at once.
const PIECE: f64 = 4.0 * 1024.0 * 1024.0;

/// What some editors put at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file whose lines come one after another, of which memory holds a piece and no more.
pub(super) struct Pieces {
    file: Blob,
    /// Bytes taken from the file.
    read: f64,
    buffer: LineBuffer,
}

/// What was read, up to where lines were taken from.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

impl Pieces {
    pub(super) fn of(file: Blob) -> Self {
        Self {
            file,
            read: 0.0,
            buffer: LineBuffer::default(),
        }
    }

    /// Bytes in all.
    pub(super) fn size(&self) -> u64 {
        self.file.size() as u64
    }

    /// Bytes that lines were taken from.
    pub(super) fn taken(&self) -> u64 {
        self.read as u64 - (self.buffer.bytes.len() - self.buffer.taken) as u64
    }

    /// The next line without its line break, and whether it had one; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read any more, or its text is not UTF-8.
    pub(super) async fn line(&mut self) -> Result<Option<(String, bool)>, String> {
        loop {
            if let Some(line) = self.buffer.line() {
                return text(line).map(|line| Some((line, true)));
            }
            if self.read >= self.file.size() {
                let rest = self.buffer.rest();
                if rest.is_empty() {
                    return Ok(None);
                }
                return text(rest).map(|line| Some((line, false)));
            }
            self.read_on().await?;
        }
    }

    async fn read_on(&mut self) -> Result<(), String> {
        let end = (self.read + PIECE).min(self.file.size());
        let failed = |_| "it cannot be read; choose it again".to_owned();
        let piece = self.file.slice_with_f64_and_f64(self.read, end).map_err(failed)?;
        let piece = JsFuture::from(piece.array_buffer()).await.map_err(failed)?;
        let mut piece = Uint8Array::new(&piece).to_vec();
        if self.read == 0.0 && piece.starts_with(BYTE_ORDER_MARK) {
            piece.drain(..BYTE_ORDER_MARK.len());
        }
        self.buffer.append(&piece);
        self.read = end;
        Ok(())
    }
}

impl LineBuffer {
    fn append(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(piece);
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.bytes[self.taken..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]).to_vec();
        self.taken += end + 1;
        Some(line)
    }

    fn rest(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.taken);
        self.taken = self.bytes.len();
        rest
    }
}

fn text(line: Vec<u8>) -> Result<String, String> {
    String::from_utf8(line).map_err(|_| "its text is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::LineBuffer;

    #[test]
    fn lines_are_found_across_pieces() {
        let mut buffer = LineBuffer::default();
        buffer.append(b"one\ntw");
        assert_eq!(buffer.line().as_deref(), Some(&b"one"[..]));
        assert_eq!(buffer.line(), None);
        buffer.append(b"o\r\n\nthr");
        assert_eq!(buffer.line().as_deref(), Some(&b"two"[..]));
        assert_eq!(buffer.line().as_deref(), Some(&b""[..]));
        assert_eq!(buffer.line(), None);
        assert_eq!(buffer.rest(), b"thr");
        assert!(buffer.rest().is_empty());
    }
}
