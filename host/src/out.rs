//! What a command prints, and what becomes of the process when nobody reads it.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
    process::exit,
};

/// How a shell tells of a program that SIGPIPE ended.
const CLOSED: i32 = 128 + 13;

/// Prints a line to standard output.
///
/// The process ends here if it cannot be written: without a word when nobody reads any more, as in `troupe sim | head`.
pub fn line(line: impl Display) {
    text(format_args!("{line}\n"));
}

/// Prints to standard output what has its line breaks already. Ends the process as [`line()`] does.
pub fn text(text: impl Display) {
    let mut output = io::stdout().lock();
    match write!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(CLOSED),
        Err(error) => {
            note(format_args!("troupe: standard output cannot be written: {error}"));
            exit(1);
        }
    }
}

/// Prints a line to standard error, where one that nobody reads changes nothing.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
