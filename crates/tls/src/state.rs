//! A server's TLS: what its files say now, and the mode.

use crate::loaded::{Loaded, load};
use crate::settings::{ReadFile, Settings};
use crate::words;
use arc_swap::ArcSwap;
use pando_base::{Result, limits};
use pando_env::tls::{Certificates, OwnCertificate, TlsMode};
use pando_env::{BoxFuture, Component, Env, Log};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Settings, and what the files that they name said last.
pub struct Tls {
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    read: ReadFile,
    mode: AtomicU8,
    pub(crate) failed_in: AtomicU64,
    failed_out: AtomicU64,
    /// Why servers that were dialed refuse, or are refused, and since when the log has said so.
    told: Mutex<BTreeMap<String, (String, Duration)>>,
    loaded: ArcSwap<Loaded>,
}

impl Tls {
    /// Reads all files. `env` is the world below: its clock ends handshakes, its log tells of certificates.
    pub fn load(env: Env, settings: Settings, read: ReadFile) -> Result<Arc<Tls>> {
        let loaded = load(&settings, &read, &env.log)?;
        let mode = AtomicU8::new(settings.mode as u8);
        Ok(Arc::new(Tls {
            env,
            settings,
            read,
            mode,
            failed_in: AtomicU64::new(0),
            failed_out: AtomicU64::new(0),
            told: Mutex::default(),
            loaded: ArcSwap::from_pointee(loaded),
        }))
    }
    /// A handshake with a server that was dialed failed. Whoever dials tries again soon: the log says it once a minute, or when the
    /// reason is another one.
    pub(crate) fn was_refused(&self, addr: &str, why: &str) {
        self.failed_out.fetch_add(1, Relaxed);
        let now = self.env.clock.mono();
        let pause = Duration::from_millis(limits::TLS_REFUSAL_TOLD_MS);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(addr).is_some_and(|(last, since)| last == why && now.saturating_sub(*since) < pause) {
            return;
        }
        if told.len() >= limits::REPLSET_MEMBERS_MAX {
            told.clear();
        }
        told.insert(addr.to_owned(), (why.to_owned(), now));
        drop(told);
        let (id, text) = match why {
            _ if why.starts_with(words::OTHER_HOST) => {
                (23_257, "The server certificate does not match the remote host name")
            }
            _ if why.starts_with(words::REJECTED) => (23_256, words::REJECTED),
            _ => (9_100_141, "The TLS handshake with another server failed"),
        };
        self.env.log.named("ReplNetwork").error(Component::Network, id, text, |a| {
            a.str("remote", addr).str("error", why);
        });
    }
    /// For one connection.
    pub(crate) fn current(&self) -> Arc<Loaded> {
        self.loaded.load_full()
    }
}

impl Certificates for Tls {
    fn mode(&self) -> TlsMode {
        let mode = self.mode.load(Relaxed);
        TlsMode::ALL.into_iter().find(|m| *m as u8 == mode).unwrap_or_default()
    }
    fn set_mode(&self, mode: TlsMode) {
        self.mode.store(mode as u8, Relaxed);
    }
    fn own(&self) -> OwnCertificate {
        self.loaded.load().own.clone()
    }
    fn failed(&self) -> (u64, u64) {
        (self.failed_in.load(Relaxed), self.failed_out.load(Relaxed))
    }
    fn rotate(&self, log: &Log) -> BoxFuture<'_, Result<()>> {
        let (settings, read, log) = (self.settings.clone(), self.read.clone(), log.clone());
        Box::pin(async move {
            let loading = self.env.offload(move || load(&settings, &read, &log));
            let loaded =
                loading.await.ok_or_else(|| crate::files::invalid("reading the certificates panicked"))??;
            self.loaded.store(Arc::new(loaded));
            Ok(())
        })
    }
}
