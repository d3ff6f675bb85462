//! A server's TLS: what its files say now, and the mode.

use crate::loaded::{Loaded, load};
use crate::settings::{ReadFile, Settings};
use arc_swap::ArcSwap;
use pando_base::Result;
use pando_env::tls::{Certificates, OwnCertificate, TlsMode};
use pando_env::{BoxFuture, Env};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Settings, and what the files that they name said last.
pub struct Tls {
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    read: ReadFile,
    mode: AtomicU8,
    pub(crate) failed_in: AtomicU64,
    pub(crate) failed_out: AtomicU64,
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
            loaded: ArcSwap::from_pointee(loaded),
        }))
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
    fn rotate(&self) -> BoxFuture<'_, Result<()>> {
        let (settings, read, log) = (self.settings.clone(), self.read.clone(), self.env.log.clone());
        Box::pin(async move {
            let loading = self.env.offload(move || load(&settings, &read, &log));
            let loaded =
                loading.await.ok_or_else(|| crate::files::invalid("reading the certificates panicked"))??;
            self.loaded.store(Arc::new(loaded));
            Ok(())
        })
    }
}
