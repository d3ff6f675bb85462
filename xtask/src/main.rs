//! `cargo xtask <command>`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tree = xtask::tree::Tree::load();
    match words.as_slice() {
        ["tidy"] => {
            let problems = xtask::tidy::run(&tree);
            for p in &problems {
                println!("{p}");
            }
            println!("tidy: {} files, {} problems", tree.files.len(), problems.len());
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        ["tour", name] => {
            for stop in xtask::tour::stops(&tree, name) {
                println!("{}/{}  {}:{}  {}", stop.number, stop.of, stop.file, stop.line, stop.item);
            }
            ExitCode::SUCCESS
        }
        _ => {
            println!("usage: cargo xtask tidy | cargo xtask tour <insert|find>");
            ExitCode::FAILURE
        }
    }
}
