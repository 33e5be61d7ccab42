use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, StoreError};

/// The device and inode of the file at a path when it was opened.
///
/// A file that was deleted or moved can still be written while it is open, and the data is lost when the process ends.
/// So the path is checked before every commit. That takes a microsecond; a commit takes hundreds.
pub(super) struct FileIdentity {
    path: PathBuf,
    file: Option<Number>,
}

/// Device and inode of a file.
type Number = (u64, u64);

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let file = number(path).map_err(|error| {
            StoreError::new(ErrorKind::Broken, format!("{} cannot be looked at: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Fails if the path is not the same file any more.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match number(&self.path) {
            Ok(file) if file == self.file => Ok(()),
            _ => {
                let path = self.path.display();
                let message =
                    format!("{path} was moved or deleted while the hub ran; put it back or start the hub anew");
                Err(StoreError::new(ErrorKind::Broken, message))
            }
        }
    }
}

#[cfg(unix)]
fn number(path: &Path) -> std::io::Result<Option<Number>> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).map(|file| Some((file.dev(), file.ino())))
}

/// On other systems an open file cannot be deleted.
#[cfg(not(unix))]
fn number(path: &Path) -> std::io::Result<Option<Number>> {
    std::fs::metadata(path).map(|_| None)
}
