use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, StoreError};

/// Which file a name stood for when it was opened.
///
/// A file that was deleted or moved can be written for as long as it is open, and whatever is written is gone with the
/// process. So the name is looked at before every commit; that costs a microsecond where a commit costs hundreds.
pub(super) struct FileIdentity {
    path: PathBuf,
    file: Option<Number>,
}

/// Device and number of a file.
type Number = (u64, u64);

impl FileIdentity {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let file = number(path).map_err(|error| {
            StoreError::new(ErrorKind::Broken, format!("{} cannot be looked at: {error}", path.display()))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Whether the name still stands for the same file.
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

/// Elsewhere an open file cannot be deleted.
#[cfg(not(unix))]
fn number(path: &Path) -> std::io::Result<Option<Number>> {
    std::fs::metadata(path).map(|_| None)
}
