//! Output of commands, and the end of the process if nobody reads it.
//!
//! What comes from a cluster, such as the last words of a container, may have characters that a terminal obeys. They are printed
//! as `\u{1b}`.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
    process::exit,
};

pub use decide::shown::{OneLine, Shown};

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
