//! The log of a hub in the background: a file that is moved aside when it is full, so that the log has a bound.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file and the one before it have at most this size each, in bytes.
const SIZE_MAX: u64 = 5 * 1024 * 1024;

pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    size_max: u64,
}

/// Opens a log to append to it, with mode 600. A full one is moved aside first.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > SIZE_MAX) {
        fs::rename(path, former(path))?;
    }
    open_file(path)
}

fn open_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Where the former file is kept.
fn former(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

impl RotatingFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::with_size(path, SIZE_MAX)
    }

    fn with_size(path: &Path, size_max: u64) -> io::Result<Self> {
        let file = open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, size, size_max })
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, former(&self.path))?;
        self.file = open_file(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.size > 0 && self.size + bytes.len() as u64 > self.size_max {
            self.rotate()?;
        }
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_stays_within_its_bound_and_keeps_the_newest_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.log");
        fs::write(&path, "from before\n").expect("it can be written");
        let mut log = RotatingFile::with_size(&path, 1_000).expect("it can be opened");
        for number in 0..500 {
            log.write_all(format!("line {number}\n").as_bytes()).expect("it can be written");
        }
        let read = |path: &Path| fs::read_to_string(path).expect("it is there");
        let (newest, older) = (read(&path), read(&former(&path)));
        assert!(newest.len() <= 1_000 && older.len() <= 1_000, "{} {}", newest.len(), older.len());
        assert!(newest.ends_with("line 499\n") && older.starts_with("line "), "{newest}");
        let first =
            newest.lines().next().expect("a line").trim_start_matches("line ").parse::<u32>().expect("a number");
        assert!(older.ends_with(&format!("line {}\n", first - 1)), "no line is lost between the files");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }
}
