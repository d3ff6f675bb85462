//! What a process proves itself with, and where it accounts for what it does: read from the files that its options name.

use crate::{audit, keyfile, tls};
use pando_audit::AuditLog;
use pando_auth::ClusterAuth;
use pando_base::Result;
use pando_command::{Param, Params};
use pando_env::Env;
use pando_shell::Config;
use pando_tls::Tls;
use std::sync::Arc;

pub struct Secured {
    pub tls: Option<Arc<Tls>>,
    /// How it logs in to other members, and what it takes of them.
    pub cluster_auth: Arc<ClusterAuth>,
    pub audit: Option<Arc<AuditLog>>,
}

impl Secured {
    /// And the world with TLS on its network, where that was asked for.
    pub fn by(config: &Config, env: Env, params: &Params) -> Result<(Env, Secured)> {
        let keys = keyfile::read_given(config.security.key_file.as_deref(), &env.log)?;
        let (env, tls) = tls::on(env, config.tls.as_ref(), params)?;
        if let Some(tls) = &tls {
            tls::watch_expiry(&env, tls, params.int(Param::tlsX509ExpirationWarningThresholdDays));
        }
        let audit = audit::open(config.audit.as_ref(), &env)?;
        let cluster_auth = Arc::new(ClusterAuth::new(config.security.cluster_auth, keys));
        Ok((env, Secured { tls, cluster_auth, audit }))
    }
    /// As `getParameter` shows it.
    pub fn show_in(&self, params: &Params) {
        params.force_text(Param::clusterAuthMode, self.cluster_auth.mode().name());
        params.force_text(Param::tlsMode, tls::mode_of(self.tls.as_ref()).name());
    }
}
