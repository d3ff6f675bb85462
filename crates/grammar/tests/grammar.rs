//! What programs are drawn from, and that a server lives through some of them.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use pando_grammar::draw::{Class, Gen, Names, unknown_commands};
use pando_grammar::program::Program;
use pando_grammar::report::json;
use std::collections::BTreeSet;

/// Every operator, accumulator, window function, stage, update operator and command is drawn sooner or later.
#[test]
fn no_name_of_a_table_is_left_out() {
    let mut missing: BTreeSet<_> = Names::get().all().into_iter().collect();
    // They would end the server under test, or its data.
    missing.retain(|(_, name)| !["shutdown", "resync"].contains(name));
    for seed in 0..200_000 {
        let p = match seed % 4 {
            3 => Program::of_class(seed, Class::Admin, Gen::new(seed)),
            _ => Program::of(seed),
        };
        for drawn in &p.drawn {
            missing.remove(drawn);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("never drawn: {missing:?}");
}

#[test]
fn the_same_seed_is_the_same_program() {
    for seed in 0..300 {
        let (a, b) = (Program::of(seed), Program::of(seed));
        let text = |p: &Program| p.calls().map(|c| json(&c.cmd)).collect::<Vec<_>>();
        assert_eq!(text(&a), text(&b), "seed {seed}");
    }
}

#[test]
fn forms_are_of_commands_that_there_are() {
    assert_eq!(unknown_commands(), Vec::<&str>::new());
}

/// A few programs, on a server of its own.
#[test]
fn a_server_lives_through_some_programs() {
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_grammar"))
        .args(["--programs", "1500", "--seed", "4000000"])
        .output()
        .expect("the fuzzer runs");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}");
    assert!(said.contains("1500 programs"), "{said}");
}
