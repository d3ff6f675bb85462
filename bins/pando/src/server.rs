//! `pando server`: what `pandod` is, in this binary. `pando up --members` starts its members this way.

use crate::Command;

pub(crate) const COMMAND: Command =
    Command { name: "server", help: "run a server with mongod's options, as pandod does", run };

fn run(args: &[String]) -> u8 {
    let program = std::env::args().next().unwrap_or_default();
    pandod::command_line::run("pando server", [program].into_iter().chain(args.iter().cloned()).collect())
}
