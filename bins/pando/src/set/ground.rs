//! What is checked before any process is started. Each refusal says what to do.

use super::Plan;
use pando_env_tokio::lock;
use std::net::TcpListener;
use std::path::PathBuf;

/// The program that the members run, once nothing stands in the way: this one.
pub(crate) fn check(plan: &Plan) -> Result<PathBuf, String> {
    let binary = std::env::current_exe().ok().filter(|p| p.is_file());
    let binary = binary
        .ok_or("the program file of `pando` is gone, so members cannot be started: install it again")?;
    let known = (0..).take_while(|i| plan.folder(*i).is_dir()).count();
    if known != 0 && known != plan.members {
        return Err(format!(
            "{} holds a set of {known} members: say --members {known}, or name another folder with --data",
            plan.home.display()
        ));
    }
    for i in 0..plan.members {
        let folder = plan.folder(i);
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("{} cannot be created: {e}", folder.display()))?;
        if let Some(pid) = lock::running_pid(&folder) {
            return Err(format!(
                "a server already runs on {} (process {pid}), perhaps left by an earlier `pando up`: stop it with \
                 `pando server --shutdown --dbpath {}`, or name another folder with --data",
                folder.display(),
                folder.display()
            ));
        }
    }
    for i in 0..plan.members {
        if let Err(e) = TcpListener::bind(("127.0.0.1", plan.port(i))) {
            return Err(format!(
                "port {} cannot be used: {}. The members take the ports {} to {}; name other ones with --port, or \
                 stop what listens there",
                plan.port(i),
                pando_env_tokio::process::words(&e),
                plan.port(0),
                plan.port(plan.members - 1)
            ));
        }
    }
    Ok(binary)
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
