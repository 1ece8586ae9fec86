//! Files that are watched for changes: their times and sizes are read again and again, which works in every folder and
//! needs no help of the operating system.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

/// How often they are looked at.
const PERIOD: Duration = Duration::from_millis(300);

/// Folders with what is made or installed, not written by hand.
const MADE: [&str; 6] = [".git", ".venv", "__pycache__", "bindings", "node_modules", "target"];

/// At most so many files are watched.
const MOST: usize = 10_000;

/// Files with their times and sizes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<PathBuf, (SystemTime, u64)>);

impl Files {
    /// Returns these files, and those in these folders but for what is made or installed.
    pub(super) fn of(places: &[&Path]) -> Self {
        let mut files = Self::default();
        places.iter().for_each(|place| files.add(place));
        files
    }

    /// Waits until they are not as they were, and returns the first that is another.
    pub(super) fn changed(&self, places: &[&Path]) -> PathBuf {
        loop {
            thread::sleep(PERIOD);
            if let Some(file) = self.differs_from(&Self::of(places)) {
                return file;
            }
        }
    }

    /// Returns the first file that is not in both, or not the same in both.
    fn differs_from(&self, other: &Self) -> Option<PathBuf> {
        let mut all = self.0.keys().chain(other.0.keys());
        all.find(|file| self.0.get(*file) != other.0.get(*file)).cloned()
    }

    fn add(&mut self, place: &Path) {
        let Ok(metadata) = fs::metadata(place) else { return };
        if self.0.len() >= MOST {
            return;
        }
        if metadata.is_file() {
            let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            self.0.insert(place.to_owned(), (time, metadata.len()));
            return;
        }
        let entries = fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
        // A link to a folder may lead back here.
        let is_followed = |entry: &fs::DirEntry| {
            let is_made = entry.file_name().to_str().is_some_and(|name| MADE.contains(&name));
            !is_made && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
        };
        entries.filter(is_followed).for_each(|entry| self.add(&entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_made_or_removed_is_another_and_what_is_built_is_not_looked_at() {
        let folder = std::env::temp_dir().join(format!("troupe-watch-{}", std::process::id()));
        fs::create_dir_all(folder.join("target")).unwrap();
        let file = folder.join("a.txt");
        fs::write(&file, "one").unwrap();
        let now = || Files::of(&[&folder]);
        let first = now();
        fs::write(folder.join("target/built"), "x").unwrap();
        assert_eq!(first.differs_from(&now()), None);
        fs::write(&file, "longer").unwrap();
        assert_eq!(first.differs_from(&now()), Some(file.clone()));
        let second = now();
        fs::write(folder.join("b.txt"), "two").unwrap();
        assert_eq!(second.differs_from(&now()), Some(folder.join("b.txt")));
        fs::remove_file(&file).unwrap();
        assert_eq!(second.differs_from(&now()), Some(file));
        fs::remove_dir_all(folder).unwrap();
    }
}
