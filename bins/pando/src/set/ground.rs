//! What is checked before any process is started. Each refusal says what to do.

use super::Plan;
use pando_env_tokio::{lock, process};
use std::net::TcpListener;
use std::path::PathBuf;

/// The program that the members run, once nothing stands in the way: this one.
pub(crate) fn check(plan: &Plan) -> Result<PathBuf, String> {
    let binary = binary()?;
    look(plan)?;
    make_folders(plan)?;
    Ok(binary)
}

pub(crate) fn binary() -> Result<PathBuf, String> {
    let binary = std::env::current_exe().ok().filter(|p| p.is_file());
    binary.ok_or_else(|| {
        "the program file of `pando` is gone, so members cannot be started: install it again".to_owned()
    })
}

/// Nothing is made yet: who is refused finds everything as it was.
pub(crate) fn look(plan: &Plan) -> Result<(), String> {
    let known = (0..).take_while(|i| plan.folder(*i).is_dir()).count();
    if known != 0 && known != plan.members {
        return Err(format!(
            "{} holds a set of {known} members: say --members {known}, or name another folder with --data",
            plan.home.display()
        ));
    }
    for folder in (0..known).map(|i| plan.folder(i)) {
        if let Some(pid) = lock::running_pid(&folder) {
            return Err(format!(
                "a server already runs on {} (process {pid}), perhaps left by an earlier `pando up`: stop it with \
                 `pando server --shutdown --dbpath {}`, or name another folder with --data",
                folder.display(),
                folder.display()
            ));
        }
    }
    (0..plan.members).try_for_each(|i| {
        port_is_free(
            plan.port(i),
            &format!("The members take the ports {} to {}", plan.port(0), plan.port(plan.members - 1)),
        )
    })
}

/// `taken` says who takes which ports.
pub(crate) fn port_is_free(port: u16, taken: &str) -> Result<(), String> {
    TcpListener::bind(("127.0.0.1", port)).map(drop).map_err(|e| {
        format!(
            "port {port} cannot be used: {}. {taken}; name other ones with --port, or stop what listens there",
            process::words(&e)
        )
    })
}

pub(crate) fn make_folders(plan: &Plan) -> Result<(), String> {
    (0..plan.members).map(|i| plan.folder(i)).try_for_each(|folder| {
        std::fs::create_dir_all(&folder).map_err(|e| format!("{} cannot be created: {e}", folder.display()))
    })
}

pub(crate) fn another_set(plan: &Plan, hosts: &[&str]) -> String {
    let first = hosts.first().and_then(|h| h.rsplit(':').next()).unwrap_or("?");
    format!(
        "the data in {} belong to a set of {}: say --members {} --port {first}, or name another folder with --data",
        plan.home.display(),
        hosts.join(", "),
        hosts.len()
    )
}
