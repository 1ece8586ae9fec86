//! Findings, and their text for people.

use serde::Serialize;
use std::fmt;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// As it should be.
    Fine,
    /// Useful to know.
    Note,
    /// Must be fixed before Troupe starts.
    InTheWay,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// What was found.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<String>,
}

/// Findings about one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The subject.
    pub about: &'static str,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// All findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The findings by subject.
    pub sections: Vec<Section>,
}

impl Finding {
    pub(crate) fn fine(what: impl Into<String>) -> Self {
        Self { weight: Weight::Fine, what: what.into(), to_do: None }
    }

    pub(crate) fn note(what: impl Into<String>) -> Self {
        Self { weight: Weight::Note, what: what.into(), to_do: None }
    }

    pub(crate) fn in_the_way(what: impl Into<String>, to_do: impl Into<String>) -> Self {
        Self { weight: Weight::InTheWay, what: what.into(), to_do: Some(to_do.into()) }
    }

    pub(crate) fn but(self, to_do: impl Into<String>) -> Self {
        Self { to_do: Some(to_do.into()), ..self }
    }
}

impl Section {
    pub(crate) fn new(about: &'static str, findings: Vec<Finding>) -> Self {
        Self { about, findings }
    }
}

impl Report {
    /// Whether no finding must be fixed.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.in_the_way() == 0
    }

    fn in_the_way(&self) -> usize {
        let findings = self.sections.iter().flat_map(|section| &section.findings);
        findings.filter(|finding| finding.weight == Weight::InTheWay).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Section { about, findings } in &self.sections {
            writeln!(f, "{about}")?;
            for (place, Finding { weight, what, to_do }) in findings.iter().enumerate() {
                let word = match weight {
                    Weight::Fine => "ok",
                    Weight::Note => "note",
                    Weight::InTheWay => "STOP",
                };
                writeln!(f, "  {word:<4}  {what}")?;
                // Print the remedy of several findings in a row once.
                let of_next = findings.get(place + 1).and_then(|next| next.to_do.as_ref());
                if let Some(to_do) = to_do.as_ref().filter(|to_do| Some(*to_do) != of_next) {
                    writeln!(f, "        {to_do}")?;
                }
            }
        }
        match self.in_the_way() {
            0 => write!(f, "verdict: nothing stands in the way"),
            1 => write!(f, "verdict: 1 thing stands in the way; the line below STOP says what to do"),
            many => write!(f, "verdict: {many} things stand in the way; the lines below STOP say what to do"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_verdict_and_only_what_is_in_the_way_counts() {
        let fine = Section::new("rights", vec![Finding::fine("all there"), Finding::note("odd").but("look")]);
        let report = Report { sections: vec![fine.clone()] };
        let text = "rights\n  ok    all there\n  note  odd\n        look\nverdict: nothing stands in the way";
        assert_eq!(report.to_string(), text);
        assert!(report.is_clear());

        let stop = Section::new("jobs", vec![Finding::in_the_way("unseen", "look again")]);
        let report = Report { sections: vec![fine, stop] };
        assert!(!report.is_clear());
        let last = "  STOP  unseen\n        look again\n\
                    verdict: 1 thing stands in the way; the line below STOP says what to do";
        assert!(report.to_string().ends_with(last), "{report}");
    }

    #[test]
    fn what_is_to_be_done_about_findings_in_a_row_is_reported_once() {
        let findings =
            ["a", "b", "c"].map(|what| Finding::in_the_way(what, if what == "c" { "other" } else { "same" }));
        let text = Report { sections: vec![Section::new("rights", findings.to_vec())] }.to_string();
        let expected = "rights\n  STOP  a\n  STOP  b\n        same\n  STOP  c\n        other\nverdict: 3";
        assert!(text.starts_with(expected), "{text}");
    }
}
