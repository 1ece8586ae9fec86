//! Texts that others have written, as people are shown them: without what a terminal obeys, what breaks a line, and what
//! has a reader see another order of letters.

use std::fmt::{self, Display, Write};

/// Returns whether a terminal or a reader's eye obeys this character: control characters, line and paragraph separators,
/// and marks, embeddings, overrides and isolates of direction.
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    let is_direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') || is_direction
}

/// Returns the character, or a space in place of one that is obeyed.
#[must_use]
pub fn blank(character: char) -> char {
    if is_obeyed(character) { ' ' } else { character }
}

/// A text with the characters that are obeyed as `\u{1b}`. Line breaks and tabs stay.
#[derive(Debug, Clone, Copy)]
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { to: f, keeps_layout: true }, "{}", self.0)
    }
}

/// The same in one line: line breaks and tabs are spaces.
#[derive(Debug, Clone, Copy)]
pub struct OneLine<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { to: f, keeps_layout: false }, "{}", self.0)
    }
}

struct Escaping<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    keeps_layout: bool,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut begin = 0;
        for (at, character) in text.char_indices().filter(|(_, character)| is_obeyed(*character)) {
            let is_layout = matches!(character, '\n' | '\t');
            if is_layout && self.keeps_layout {
                continue;
            }
            self.to.write_str(&text[begin..at])?;
            match is_layout {
                true => self.to.write_char(' ')?,
                false => write!(self.to, "{}", character.escape_unicode())?,
            }
            begin = at + character.len_utf8();
        }
        self.to.write_str(&text[begin..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_nothing_else_is_changed() {
        let shown = |text: &str| Shown(text).to_string();
        assert_eq!(shown("a\tb\nü 𝄞 e\u{301} \u{200d}"), "a\tb\nü 𝄞 e\u{301} \u{200d}");
        assert_eq!(shown("\x1b]0;title\x07\r\u{9b}2J"), r"\u{1b}]0;title\u{7}\u{d}\u{9b}2J");
        assert_eq!(shown("no\u{202e}lacol"), r"no\u{202e}lacol");
        assert_eq!(shown("\u{61c}\u{200f}\u{2066}"), r"\u{61c}\u{200f}\u{2066}");
        assert_eq!(shown("one\u{2028}two\u{2029}three"), r"one\u{2028}two\u{2029}three");
    }

    #[test]
    fn one_line_has_no_break() {
        assert_eq!(OneLine("a\tb\nc\r\u{85}d").to_string(), r"a b c\u{d}\u{85}d");
    }

    #[test]
    fn what_is_cut_to_a_line_has_a_space_in_place_of_each() {
        let blanked: String = "red\u{1b}[31m\nnext\u{202e}\u{2028}".chars().map(blank).collect();
        assert_eq!(blanked, "red [31m next  ");
    }
}
