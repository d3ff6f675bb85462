//! What others see of the command line (`ps`, `/proc/PID/cmdline`) without its secrets.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

static GIVEN: OnceLock<Vec<OsString>> = OnceLock::new();

/// As they were given, with the program's name in front: a new run of the program needs them whole.
pub(crate) fn given() -> impl Iterator<Item = OsString> {
    GIVEN.get().cloned().unwrap_or_else(|| std::env::args_os().collect()).into_iter()
}

/// Overwrites these arguments, or their ends (`--name=secret`), with `x`. They are found where the kernel shows them from.
pub fn hide(secrets: &[&str]) -> io::Result<()> {
    let shown = std::fs::read("/proc/self/cmdline")?;
    let places = places(&shown, secrets);
    if places.is_empty() {
        return Ok(());
    }
    GIVEN.get_or_init(|| std::env::args_os().collect());
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let start = start_of_arguments(&stat)
        .ok_or_else(|| io::Error::other("the kernel does not tell where they are"))?;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
    for (at, len) in places {
        memory.write_all_at(&vec![b'x'; len], start + at as u64)?;
    }
    Ok(())
}

/// Where secrets begin in the list of arguments, each of which ends with a zero, and how long they are.
fn places(shown: &[u8], secrets: &[&str]) -> Vec<(usize, usize)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for argument in shown.split(|b| *b == 0) {
        let ends_in = |secret: &&&str| {
            let head =
                argument.len().checked_sub(secret.len()).filter(|_| argument.ends_with(secret.as_bytes()));
            !secret.is_empty() && head.is_some_and(|n| n == 0 || argument[n - 1] == b'=')
        };
        if let Some(secret) = secrets.iter().find(ends_in) {
            found.push((at + argument.len() - secret.len(), secret.len()));
        }
        at += argument.len() + 1;
    }
    found
}

/// Field 48 of `/proc/PID/stat`, counted behind the name, which may hold anything.
fn start_of_arguments(stat: &str) -> Option<u64> {
    const BEHIND_NAME: usize = 48 - 3;
    stat.rsplit_once(')')?.1.split_whitespace().nth(BEHIND_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_as_arguments_and_as_their_ends() {
        let shown = b"pandod\0--password\0s3\0--other=s3\0xs3\0s3x\0";
        assert_eq!(places(shown, &["s3"]), [(18, 2), (29, 2)]);
        assert_eq!(places(shown, &["", "none"]), []);
    }

    #[test]
    fn the_kernel_tells_where_arguments_begin() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let start = start_of_arguments(&stat).unwrap();
        let mut first = [0; 4];
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.read_exact_at(&mut first, start).unwrap();
        assert_eq!(first, std::fs::read("/proc/self/cmdline").unwrap()[..4]);
    }
}
