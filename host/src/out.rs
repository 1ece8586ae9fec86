//! Output of commands, and the end of the process if nobody reads it.

use std::{
    fmt::Display,
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
    let _ = writeln!(io::stderr(), "{line}");
}
