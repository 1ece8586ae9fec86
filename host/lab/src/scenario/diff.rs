//! A line-by-line diff of two texts for a person to read.

/// The number of context lines around a difference.
const AROUND: usize = 3;

/// Returns the diff from `old` to `new` with context lines: `-` for the file, `+` for what happened.
#[must_use]
pub fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let merged = merged(&old, &new);
    let near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        merged.iter().skip(from).take(AROUND + at - from + 1).any(|(sign, _)| *sign != ' ')
    };
    let mut text = String::new();
    let mut skipped = false;
    for (at, (sign, line)) in merged.iter().enumerate() {
        if near(at) {
            text.push_str(&format!("{sign} {line}\n"));
            skipped = false;
        } else if !skipped {
            text.push_str("  ...\n");
            skipped = true;
        }
    }
    text
}

/// Returns the lines of both texts in one list, each with ' ', '-' or '+', along a longest common subsequence.
fn merged<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let common = common(old, new);
    let (mut i, mut j) = (0, 0);
    let mut merged = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            merged.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            merged.push(('-', old[i]));
            i += 1;
        } else {
            merged.push(('+', new[j]));
            j += 1;
        }
    }
    merged
}

/// Returns the number of lines that `old[i..]` and `new[j..]` have in common, for each i and j.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_the_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\n5\nsix\n7\n8\n9\nten\n";
        assert_eq!(lines(old, new), "  ...\n  3\n  4\n  5\n- 6\n+ six\n  7\n  8\n  9\n+ ten\n");
        assert_eq!(lines("a\n", "a\n"), "  ...\n");
    }
}
