//! `pando version`.

use crate::Command;
use pandod::{exit, version};

pub(crate) const COMMAND: Command = Command { name: "version", help: "show which version this is", run };

fn run(_: &[String]) -> u8 {
    print!("PandoDB {}\n{}", version::OWN, version::text("follows MongoDB"));
    exit::CLEAN
}
