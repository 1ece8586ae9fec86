//! Logs: one line per event, facts as fields. What others have written in it, such as a message of a cluster, breaks no line
//! and moves no cursor.

use decide::shown::is_obeyed;
use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};
use tracing_subscriber::{
    EnvFilter, Layer, fmt, fmt::MakeWriter, layer::SubscriberExt, registry, util::SubscriberInitExt,
};
use troupe::{out, traces::SpanLayer};

/// Sends logs to standard error: text by default, JSON if `json`. `RUST_LOG` overrides the `default` filter. Lines are
/// dropped if standard error is closed. Spans go to `spans` too.
pub fn start(json: bool, default: &str, spans: Option<SpanLayer>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let form = if json { Form::Json } else { Form::Text { has_colours: io::stderr().is_terminal() } };
    let lines = lines(form, io::stderr).with_filter(filter).boxed();
    let layers: Vec<SpanLayer> = [lines].into_iter().chain(spans).collect();
    if let Err(error) = registry().with(layers).try_init() {
        out::diagnostic(format_args!("logs go where an earlier call sent them: {error}"));
    }
}

/// The form of lines.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text { has_colours: bool },
    Json,
}

/// Returns the layer that writes lines of this form to what `writer` returns.
fn lines<W: Write + 'static>(form: Form, writer: impl Fn() -> W + Send + Sync + 'static) -> SpanLayer {
    // An internal error would be printed to standard error, which fails too, and panic.
    let lines = fmt::layer().with_writer(Escaped { form, writer }).log_internal_errors(false);
    match form {
        Form::Text { has_colours } => lines.with_ansi(has_colours).boxed(),
        Form::Json => lines.with_ansi(false).json().boxed(),
    }
}

/// Makes writers of one event.
struct Escaped<F> {
    form: Form,
    writer: F,
}

impl<'a, W: Write, F: Fn() -> W> MakeWriter<'a> for Escaped<F> {
    type Writer = Line<W>;

    fn make_writer(&'a self) -> Line<W> {
        Line { form: self.form, to: (self.writer)() }
    }
}

/// Writes an event, which comes at once, as one line.
struct Line<W> {
    form: Form,
    to: W,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.to.write_all(escaped(self.form, &String::from_utf8_lossy(event)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Returns the line with what a terminal obeys as `\u{202e}`, in JSON as `\u202e`; its end stays, and so do colours
/// where the formatter writes some: it does not escape all that others have written.
fn escaped(form: Form, line: &str) -> String {
    let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
    let mut text = String::with_capacity(line.len() + 1);
    for (at, character) in line.char_indices() {
        let written = match form {
            Form::Text { has_colours: true } if is_colour(&line[at..]) => text.write_char(character),
            Form::Json if is_obeyed(character) => write!(text, "\\u{:04x}", u32::from(character)),
            Form::Text { .. } if is_obeyed(character) => write!(text, "{}", character.escape_unicode()),
            Form::Text { .. } | Form::Json => text.write_char(character),
        };
        written.expect("a string takes all");
    }
    text + end
}

/// Returns whether the text begins with the sequence of a colour or a style.
fn is_colour(text: &str) -> bool {
    let codes = text.strip_prefix("\x1b[");
    codes.is_some_and(|codes| codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tracing::{subscriber::with_default, warn};
    use tracing_subscriber::Registry;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns what is logged of what somebody else has written.
    fn logged(form: Form, said: &str) -> String {
        let written = Written::default();
        let to = written.clone();
        let layer = lines(form, move || to.clone());
        with_default(Registry::default().with(vec![layer]), || warn!(error = %said, "a pass failed: {said}"));
        String::from_utf8(written.0.lock().clone()).unwrap()
    }

    const SAID: &str = "boom\nWARN forged\r\u{1b}]0;title\u{7}\u{202e}\u{2028}\u{9b}2J";

    #[test]
    fn an_event_is_one_line_without_what_a_terminal_obeys() {
        for has_colours in [false, true] {
            let line = logged(Form::Text { has_colours }, SAID);
            let ours = |c: char| c == '\n' || has_colours && c == '\x1b';
            assert!(line.chars().all(|c| !is_obeyed(c) || ours(c)), "{line:?}");
            assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
            assert!(!line.contains("\x1b]") && line.contains(r"boom\u{a}WARN forged"), "{line:?}");
        }
    }

    #[test]
    fn an_event_as_json_says_what_was_said() {
        let line = logged(Form::Json, SAID);
        assert!(line.trim_end_matches('\n').chars().all(|c| !is_obeyed(c)), "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let said = read["fields"]["error"].as_str().unwrap();
        assert!(said.starts_with("boom\nWARN forged") && said.contains("\u{202e}\u{2028}"), "{said:?}");
    }
}
