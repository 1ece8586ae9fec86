//! Files that users name: read within a limit, and not at all if they are larger.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    string::FromUtf8Error,
};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("{} cannot be read", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than what is expected there.
    #[error("{} has more than {most} bytes, the most that is read here; is it the right file?", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        most: usize,
    },
    /// It is no text.
    #[error("{} is no text in UTF-8", file.display())]
    NoText {
        /// The file.
        file: PathBuf,
        /// Where it ceases to be one.
        source: FromUtf8Error,
    },
}

impl ReadError {
    /// Returns whether there is no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Returns the bytes of a file, or of standard input if the path is `-`. Reads at most `most` bytes and one, also from a
/// pipe, and nothing from a file that says it is larger.
///
/// # Errors
/// If it cannot be read, or has more bytes.
pub fn bytes(file: &Path, most: usize) -> Result<Vec<u8>, ReadError> {
    let unreadable = |source| ReadError::Unreadable { file: file.to_owned(), source };
    let too_large = || ReadError::TooLarge { file: file.to_owned(), most };
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let opened = File::open(file).map_err(unreadable)?;
        if opened.metadata().map_err(unreadable)?.len() > most as u64 {
            return Err(too_large());
        }
        opened.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if bytes.len() > most { Err(too_large()) } else { Ok(bytes) }
}

/// Returns the text of a file, as [`bytes()`] returns its bytes.
///
/// # Errors
/// Those of [`bytes()`], or if it is no UTF-8.
pub fn text(file: &Path, most: usize) -> Result<String, ReadError> {
    let bytes = bytes(file, most)?;
    String::from_utf8(bytes).map_err(|source| ReadError::NoText { file: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("troupe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_has_at_most_so_many_bytes() {
        let folder = folder("files-most");
        let file = folder.join("four");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(text(&file, 4).unwrap(), "four");
        let error = text(&file, 3).unwrap_err().to_string();
        assert!(
            error.ends_with("four has more than 3 bytes, the most that is read here; is it the right file?"),
            "{error}"
        );
        std::fs::write(&file, [0xff]).unwrap();
        assert!(text(&file, 4).unwrap_err().to_string().ends_with("is no text in UTF-8"));
        assert!(bytes(&folder.join("none"), 4).unwrap_err().is_not_found());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_does_not_say_its_size_is_read_up_to_the_limit() {
        assert!(matches!(bytes(Path::new("/dev/zero"), 1 << 16), Err(ReadError::TooLarge { .. })));
    }
}
