//! Server-Sent Events, byte by byte, so that chunks may end anywhere.

/// Splits a stream into the data of its events (WHATWG HTML, section 9.2.6).
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    after_return: bool,
}

impl Events {
    /// Takes one byte; returns the data of the event that ends with it.
    pub(super) fn push(&mut self, byte: u8) -> Option<Vec<u8>> {
        let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if after_return => None,
            b'\n' | b'\r' => self.end_line(),
            _ => {
                self.line.push(byte);
                None
            }
        }
    }

    /// The data of an event that the stream's end left unfinished.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        self.end_line().or_else(|| self.end_line())
    }

    /// How many bytes are kept of the event under way.
    pub(super) fn len(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data
                .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_with_blank_lines_of_any_kind() {
        let mut events = Events::default();
        let stream = b": ping\n\ndata: a\n\nevent: x\r\ndata:b\r\ndata:  c\r\n\r\ndata: d\r\rdata: e";
        let mut seen: Vec<Vec<u8>> = stream.iter().filter_map(|&byte| events.push(byte)).collect();
        seen.extend(events.finish());
        assert_eq!(seen, [&b"a"[..], b"b\n c", b"d", b"e"]);
        assert_eq!(events.finish(), None);
    }
}
