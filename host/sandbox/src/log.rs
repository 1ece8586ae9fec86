//! The log of one instance: log calls, printed output, and the last output before a trap. All sizes are limited.

use decide::shown::blank;
use std::sync::Arc;

/// Maximum bytes of a line. A longer line is cut.
pub(super) const LONGEST_LINE: usize = 1024;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Writes an instance's lines to the host's own log, with the plugin and the job as fields.
#[derive(Debug)]
pub(super) struct Log {
    plugin: Arc<str>,
    job: Arc<str>,
    pub(super) lines_left: u32,
    dropped: u64,
    printed: Vec<u8>,
    last_words: Vec<u8>,
}

impl Log {
    /// Returns the log of an instance that is called for this job, which is "" while the plugin is loaded.
    pub(super) fn new(plugin: Arc<str>, job: Arc<str>, lines: u32) -> Self {
        Self { plugin, job, lines_left: lines, dropped: 0, printed: Vec::new(), last_words: Vec::new() }
    }

    pub(super) fn line(&mut self, level: Level, message: &str, fields: &str) {
        if self.lines_left == 0 {
            self.dropped += 1;
            return;
        }
        self.lines_left -= 1;
        let (plugin, job) = (&*self.plugin, &*self.job);
        let (text, more) = (clean(message, LONGEST_LINE), clean(fields, LONGEST_LINE));
        match level {
            Level::Error => tracing::error!(plugin, job, text, more, "plugin log"),
            Level::Warn => tracing::warn!(plugin, job, text, more, "plugin log"),
            Level::Info => tracing::info!(plugin, job, text, more, "plugin log"),
            Level::Debug => tracing::debug!(plugin, job, text, more, "plugin log"),
        }
    }

    /// Accepts bytes that the guest printed, and logs each line.
    pub(super) fn print(&mut self, bytes: impl Iterator<Item = u8>) {
        for byte in bytes {
            self.last_words.push(byte);
            if byte == b'\n' || self.printed.len() >= LONGEST_LINE {
                self.flush();
            }
            if byte != b'\n' {
                self.printed.push(byte);
            }
        }
        let too_many = self.last_words.len().saturating_sub(LONGEST_LINE);
        self.last_words.drain(..too_many);
    }

    fn flush(&mut self) {
        let printed = std::mem::take(&mut self.printed);
        if !printed.is_empty() {
            self.line(Level::Info, &String::from_utf8_lossy(&printed), "");
        }
    }

    /// Returns the end of the printed output: after a trap of a Rust plugin, its panic message.
    pub(super) fn last_words(&self) -> String {
        let words = String::from_utf8_lossy(&self.last_words);
        let words = words.split("note: run with `RUST_BACKTRACE").next().unwrap_or_default();
        clean(words.trim(), LONGEST_LINE)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
        if self.dropped > 0 {
            tracing::warn!(plugin = &*self.plugin, job = &*self.job, dropped = self.dropped, "plugin log is full");
        }
    }
}

/// Returns the text with spaces for what a terminal obeys, cut after `longest` bytes.
pub(super) fn clean(text: &str, longest: usize) -> String {
    let mut out = String::with_capacity(text.len().min(longest));
    for char in text.chars() {
        if out.len() + char.len_utf8() > longest {
            out.push('…');
            break;
        }
        out.push(blank(char));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_control_characters_and_is_cut() {
        assert_eq!(clean("red\u{1b}[31m\nnext\u{202e}", 99), "red [31m next ");
        assert_eq!(clean("äää", 4), "ää…");
    }

    #[test]
    fn the_last_output_is_the_panic_message() {
        let mut log = Log::new("p".into(), "ns/j".into(), 2);
        let noise = "x".repeat(5000);
        log.print(format!("{noise}\npanicked at lib.rs:1:\nno such role\nnote: run with `RUST_BACKTRACE=1`").bytes());
        assert!(log.last_words().ends_with("panicked at lib.rs:1: no such role"), "{}", log.last_words());
        assert!(log.last_words.len() <= LONGEST_LINE);
        assert_eq!((log.lines_left, log.dropped > 0), (0, true));
    }
}
