//! Output of commands, and the end of the process if nobody reads it.
//!
//! What comes from a cluster, such as the last words of a container, may have characters that a terminal obeys. They are printed
//! as `\u{1b}`.

use std::{
    fmt::{self, Display, Write as _},
    io::{self, ErrorKind, Write},
    process::exit,
};

/// The exit code that a shell reports for a program that SIGPIPE ended.
const CLOSED: i32 = 128 + 13;

/// Prints a line to standard output.
///
/// Ends the process if the line cannot be written; without a message if the pipe is closed, as in `troupe sim | head`.
pub fn line(line: impl Display) {
    text(format_args!("{line}\n"));
}

/// Prints a text, which has its line breaks already, to standard output. Ends the process as [`line()`] does.
pub fn text(text: impl Display) {
    raw(Shown(text));
}

/// Does the same with a text whose control characters are meant: colours, or the log of a container as it is.
pub fn raw(text: impl Display) {
    let mut output = io::stdout().lock();
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(CLOSED),
        Err(error) => {
            diagnostic(format_args!("troupe: standard output cannot be written: {error}"));
            exit(1);
        }
    }
}

/// Prints a line to standard error; ignores a failed write.
pub fn diagnostic(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", Shown(line));
}

/// A text with the characters that a terminal obeys, or that reverse what a reader sees, as `\u{1b}`. Line breaks and tabs stay.
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut begin = 0;
        for (at, character) in text.char_indices().filter(|(_, character)| is_obeyed(*character)) {
            self.0.write_str(&text[begin..at])?;
            write!(self.0, "{}", character.escape_unicode())?;
            begin = at + character.len_utf8();
        }
        self.0.write_str(&text[begin..])
    }
}

fn is_obeyed(character: char) -> bool {
    let is_layout = matches!(character, '\n' | '\t');
    let is_direction = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() && !is_layout || is_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_nothing_else_is_changed() {
        let shown = |text: &str| Shown(text).to_string();
        assert_eq!(shown("a\tb\nü 𝄞"), "a\tb\nü 𝄞");
        assert_eq!(shown("\x1b]0;title\x07\r\u{9b}2J"), r"\u{1b}]0;title\u{7}\u{d}\u{9b}2J");
        assert_eq!(shown("no\u{202e}lacol"), r"no\u{202e}lacol");
    }
}
