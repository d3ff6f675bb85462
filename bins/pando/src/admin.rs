//! `pando up --auth`: a key that the members share, and the first user, whose password is shown once.

use crate::set::command;
use pando_auth::{ClusterAuth, ClusterAuthMode, ClusterKeys, Keyfile};
use pando_base::limits;
use pando_bson::doc;
use pando_bson::extjson::base64;
use pando_env::{Env, Rng};
use pando_env_tokio::RealRng;
use pando_env_tokio::process::words;
use pando_rpc::{LoginAs, Pool, Retry};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The first user's name.
const ADMIN: &str = "admin";

/// `DIR/keyfile`, and what goes with it.
pub(crate) struct Admin {
    keyfile: PathBuf,
    auth: Arc<ClusterAuth>,
}

/// Who may log in, as it is shown.
pub(crate) enum Made {
    /// Just now, with this password.
    Now(String),
    /// When the data was new.
    Before,
}

impl Admin {
    /// Makes the keyfile if it is not there.
    pub(crate) fn prepare(folder: &Path) -> Result<Admin, String> {
        let folder = std::path::absolute(folder).map_err(|e| words(&e))?;
        let keyfile = folder.join("keyfile");
        let failed = |e: String| format!("{}: {e}", keyfile.display());
        if !keyfile.exists() {
            let write = || {
                std::fs::create_dir_all(&folder)?;
                // Under another name until it is whole: a start that was ended meanwhile leaves no half of a key.
                let new = folder.join("keyfile.new");
                let mut file = std::fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&new)?;
                file.write_all(random(limits::KEY_MADE_BYTES).as_bytes())?;
                file.sync_all()?;
                std::fs::rename(&new, &keyfile)
            };
            write().map_err(|e| failed(words(&e)))?;
        }
        let text = std::fs::read_to_string(&keyfile).map_err(|e| failed(words(&e)))?;
        let read = move || Keyfile::parse("keyfile", &text);
        let keys = ClusterKeys::read(Box::new(read)).map_err(|e| failed(e.to_string()))?;
        Ok(Admin { keyfile, auth: Arc::new(ClusterAuth::new(ClusterAuthMode::KeyFile, Some(keys))) })
    }
    /// What a server is started with.
    pub(crate) fn options(&self) -> Vec<String> {
        vec!["--keyFile".to_owned(), self.keyfile.to_string_lossy().into_owned()]
    }
    /// As a member, to look at the set.
    pub(crate) fn login(&self) -> LoginAs {
        LoginAs::Member(self.auth.clone())
    }

    /// Creates the first user on the primary of `hosts`, unless there are users. `pool` logs in by [`Admin::login`].
    pub(crate) async fn create(&self, env: &Env, pool: &Pool, hosts: &[String]) -> Result<Made, String> {
        let limit = Duration::from_millis(limits::SET_START_MS);
        let until = env.clock.mono() + limit;
        let password = random(limits::PASSWORD_MADE_BYTES).replace(['+', '/'], "x");
        let (mut why, mut tried) = (String::new(), false);
        loop {
            for host in hosts {
                match create_at(pool, host, (&password, &mut tried), limit).await {
                    Ok(Some(Made::Before)) if tried => return Ok(Made::Now(password)),
                    Ok(Some(made)) => return Ok(made),
                    Ok(None) => {}
                    Err(e) => why = e,
                }
            }
            if env.clock.mono() > until {
                return Err(format!("the first user cannot be created: {why}"));
            }
            env.clock.sleep(Duration::from_millis(limits::SET_TICK_MS)).await;
        }
    }
}

/// `None` where it is no primary. `tried` says that there were no users, and that the user was asked for: one that is there by the next look is it,
/// whose reply was lost.
async fn create_at(
    pool: &Pool,
    host: &str,
    (password, tried): (&str, &mut bool),
    limit: Duration,
) -> Result<Option<Made>, String> {
    let hello = pool.call(host, &command(doc! { "hello": 1 }), Retry::Idempotent, limit).await;
    let hello = hello.map_err(|f| f.to_string())?;
    if !hello.get("isWritablePrimary").is_some_and(|v| v.is_truthy()) {
        return Ok(None);
    }
    let users = command(doc! { "usersInfo": { "forAllDBs": true } });
    let users = pool.call(host, &users, Retry::Idempotent, limit).await.map_err(|f| f.to_string())?;
    if users.get("users").and_then(|v| v.as_array()).is_some_and(|users| users.iter().next().is_some()) {
        return Ok(Some(Made::Before));
    }
    let create = doc! {
        "createUser": ADMIN, "pwd": password, "roles": vec![pando_bson::Bson::from("root")],
        "writeConcern": { "w": "majority" }
    };
    *tried = true;
    let created = pool.call(host, &command(create), Retry::NotIdempotent, limit).await;
    created.map(|_| Some(Made::Now(password.to_owned()))).map_err(|f| f.to_string())
}

impl Made {
    /// What stands in front of the hosts of a connection string.
    pub(crate) fn of_uri(&self) -> String {
        match self {
            Made::Now(password) => format!("{ADMIN}:{password}@"),
            Made::Before => format!("{ADMIN}:<password>@"),
        }
    }
    /// A line for who reads it, about the string above.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Made::Now(_) => "  keep it   the password is shown this once",
            Made::Before => "  password  as it was shown at the first start, or of another user",
        }
    }
}

fn random(bytes: usize) -> String {
    let mut chance = vec![0; bytes];
    RealRng::new().expect("the kernel gives chance").fill(&mut chance);
    base64(&chance)
}
