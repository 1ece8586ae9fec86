//! A strict reader of OpenMetrics text.

use std::collections::BTreeMap;

/// A family: its type, its help, and its samples by name and labels.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    samples: Vec<(String, String, f64)>,
}

/// A text that was read.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// In the order of the text, by the name that queries use.
    families: Vec<(String, Family)>,
}

impl Exposition {
    /// Reads a text; panics where it is none of OpenMetrics.
    pub(crate) fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
        let (mut read, mut help) = (Self::default(), BTreeMap::new());
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').unwrap();
                assert!(help.insert(name, words).is_none(), "twice: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let queried = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
                let family =
                    Family { kind: kind.to_owned(), help: (*help.get(name).unwrap()).to_owned(), samples: vec![] };
                read.families.push((queried, family));
            } else {
                read.sample(line);
            }
        }
        read
    }

    fn sample(&mut self, line: &str) {
        // What follows is an exemplar.
        let line = line.split_once(" # ").map_or(line, |(sample, _)| sample);
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect("closed labels")),
            None => (series, ""),
        };
        let (family, last) = self.families.last_mut().unwrap();
        let suffix = name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let allowed: &[&str] = if last.kind == "histogram" { &["_sum", "_count", "_bucket"] } else { &[""] };
        assert!(allowed.contains(&suffix), "{line} is not of {family}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{value} is no number"));
        let twice = last.samples.iter().any(|(other, of, _)| other == name && of == labels);
        assert!(!twice, "twice: {line}");
        last.samples.push((name.to_owned(), labels.to_owned(), value));
    }

    /// The value of the sample with this name and these labels.
    pub(crate) fn value(&self, name: &str, labels: &str) -> f64 {
        let of_name = || self.all().filter(|(other, ..)| other == name);
        let found = of_name().find(|(_, of, _)| of == labels);
        found.unwrap_or_else(|| panic!("no {name}{{{labels}}} in {:?}", of_name().collect::<Vec<_>>())).2
    }

    /// How many samples have this name.
    pub(crate) fn samples(&self, name: &str) -> usize {
        self.all().filter(|(other, ..)| other == name).count()
    }

    /// Names and types of all families.
    pub(crate) fn families(&self) -> impl Iterator<Item = (&str, &str)> {
        self.families.iter().map(|(name, family)| (name.as_str(), family.kind.as_str()))
    }

    pub(crate) fn help(&self, name: &str) -> &str {
        &self.families.iter().find(|(other, _)| other == name).unwrap().1.help
    }

    /// The names of the labels of each sample of a family, without `le`.
    pub(crate) fn labels_of(&self, name: &str, kind: &str) -> Vec<Vec<String>> {
        let (_, family) = self.families.iter().find(|(other, _)| other == name).unwrap();
        assert_eq!(family.kind, kind);
        let names = |labels: &String| {
            let each = labels.split("\",").filter(|label| !label.is_empty());
            let names = each.map(|label| label.split_once("=\"").unwrap().0.to_owned());
            names.filter(|name| name != "le").collect()
        };
        family.samples.iter().map(|(_, labels, _)| names(labels)).collect()
    }

    fn all(&self) -> impl Iterator<Item = &(String, String, f64)> {
        self.families.iter().flat_map(|(_, family)| &family.samples)
    }
}
