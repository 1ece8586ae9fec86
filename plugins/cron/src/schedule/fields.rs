//! The five fields of a schedule, and the local times that they name.

use super::InvalidSchedule;
use jiff::civil::{Date, DateTime};

/// A field: its name, its least and greatest number, and names for its numbers from the least on.
struct Field {
    name: &'static str,
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, greatest: 59, names: &[] },
    Field { name: "hour", least: 0, greatest: 23, names: &[] },
    Field { name: "day of month", least: 1, greatest: 31, names: &[] },
    Field {
        name: "month",
        least: 1,
        greatest: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { name: "day of week", least: 0, greatest: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Numbers below 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set(u64);

impl Set {
    fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.0 >> number & 1 == 1)
    }

    /// Returns the least number that is not less than this.
    fn from(self, number: u32) -> Option<u32> {
        let rest = self.0 >> number << number;
        (rest != 0).then(|| rest.trailing_zeros())
    }
}

/// Which days are meant where both the day of the month and the day of the week are restricted, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Days {
    /// One of the fields is `*` or `?`: the other decides.
    Both,
    /// A day that either field names.
    Either,
}

/// The fields of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
    rule: Days,
}

impl Fields {
    /// Reads five fields.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidSchedule> {
        let texts: Vec<&str> = text.split_whitespace().collect();
        let texts: [&str; 5] = texts.try_into().map_err(|texts: Vec<&str>| {
            let names = FIELDS.map(|field| field.name).join(", ");
            InvalidSchedule(format!("must have 5 fields ({names}), not {}", texts.len()))
        })?;
        let mut sets = [(Set(0), false); 5];
        for ((field, text), set) in FIELDS.iter().zip(texts).zip(&mut sets) {
            *set = field.parse(text)?;
        }
        let [(minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday)] = sets;
        let rule = if any_day || any_weekday { Days::Both } else { Days::Either };
        Ok(Self { minutes, hours, days, months, weekdays, rule })
    }

    /// Returns the first local time that is not before `from`, a whole minute, nor after the end of `last_year`.
    pub(crate) fn next(&self, from: DateTime, last_year: i16) -> Option<DateTime> {
        let (mut date, mut earliest) = (from.date(), minute_of_day(from));
        while date.year() <= last_year {
            if !self.months.has(date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if let Some(minute) = self.on(date, earliest) {
                let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
                return Some(date.at(hour, minute, 0, 0));
            } else {
                date = date.tomorrow().ok()?;
            }
            earliest = 0;
        }
        None
    }

    /// Returns the first minute of this day that is not before `earliest`.
    fn on(&self, date: Date, earliest: u32) -> Option<u32> {
        let (day, weekday) = (self.days.has(date.day()), self.weekdays.has(date.weekday().to_sunday_zero_offset()));
        let is_meant = match self.rule {
            Days::Both => day && weekday,
            Days::Either => day || weekday,
        };
        if !is_meant {
            return None;
        }
        let hour = self.hours.from(earliest / 60)?;
        let in_hour = |hour: u32, minute: u32| Some(hour * 60 + self.minutes.from(minute)?);
        let at_once = if hour == earliest / 60 { in_hour(hour, earliest % 60) } else { in_hour(hour, 0) };
        at_once.or_else(|| in_hour(self.hours.from(hour + 1)?, 0))
    }
}

fn minute_of_day(time: DateTime) -> u32 {
    u32::try_from(i32::from(time.hour()) * 60 + i32::from(time.minute())).unwrap_or(0)
}

impl Field {
    /// Returns the numbers of a list, and whether one of its items is any number.
    fn parse(&self, text: &str) -> Result<(Set, bool), InvalidSchedule> {
        let (mut set, mut any) = (Set(0), false);
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (numbers, is_any) = self.item(item)?;
            set.0 |= numbers.0;
            any |= is_any;
        }
        if set.0 == 0 { Err(self.wrong(text, "names nothing")) } else { Ok((set, any)) }
    }

    /// Reads `number`, `number-number`, `*` or `?`, each perhaps with `/step`. A number with a step goes on to the greatest.
    fn item(&self, text: &str) -> Result<(Set, bool), InvalidSchedule> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(self.step(text, step)?)),
            None => (text, None),
        };
        let any = matches!(range, "*" | "?");
        let (first, last) = match range.split_once('-') {
            _ if any => (self.least, self.greatest),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None => {
                let first = self.number(range)?;
                (first, if step.is_some() { self.greatest } else { first })
            }
        };
        if first > last {
            return Err(self.wrong(text, "begins after its end"));
        }
        let step = step.unwrap_or(1);
        let numbers = (first..=last).step_by(step).fold(0, |set, number| set | 1 << number);
        Ok((Set(numbers), any && step == 1))
    }

    fn step(&self, item: &str, text: &str) -> Result<usize, InvalidSchedule> {
        let step = text.parse().ok().filter(|step| *step > 0);
        step.ok_or_else(|| self.wrong(item, "must have a step that is a positive number"))
    }

    fn number(&self, text: &str) -> Result<u32, InvalidSchedule> {
        let named = self.names.iter().zip(self.least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = named.map(|(_, number)| number).or_else(|| text.parse().ok());
        number.filter(|number| (self.least..=self.greatest).contains(number)).ok_or_else(|| {
            let range = format!("must be from {} to {}", self.least, self.greatest);
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            self.wrong(text, &format!("{range}{names}"))
        })
    }

    fn wrong(&self, text: &str, why: &str) -> InvalidSchedule {
        InvalidSchedule(format!("{} {text:?} {why}", self.name))
    }
}
