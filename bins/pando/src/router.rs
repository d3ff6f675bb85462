//! `pando router`: what `pandos` is, in this binary. `pando up --shards` starts its routers this way.

use crate::Command;

pub(crate) const COMMAND: Command =
    Command { name: "router", help: "run a router with mongos's options, as pandos does", run };

fn run(args: &[String]) -> u8 {
    let program = std::env::args().next().unwrap_or_default();
    let argv = [program].into_iter().chain(args.iter().cloned()).collect();
    pandos::command_line::run("pando router", argv, pandod::allocator::NAME)
}
