//! The server's TLS: what is read when it starts, and what the log says of its certificate.

use pando_base::{Result, limits};
use pando_command::{Param, Params};
use pando_env::tls::{Certificates, TlsMode};
use pando_env::{Component, Env};
use pando_tls::{ReadFile, Settings, Tls, TlsNet};
use std::sync::Arc;
use std::time::Duration;

/// The default of `opensslCipherConfig` in MongoDB; rustls has no other suites than strong ones.
const ALL_STRONG: &str = "HIGH:!EXPORT:!aNULL@STRENGTH";

/// The world with TLS on its network, as the options say; without TLS it is as it was.
pub fn on(env: Env, settings: Option<&Settings>, params: &Params) -> Result<(Env, Option<Arc<Tls>>)> {
    let Some(settings) = settings else { return Ok((env, None)) };
    let named = |p: Param| Some(params.text(p)).filter(|text| text != ALL_STRONG).unwrap_or_default();
    let settings = Settings {
        ciphers: named(Param::opensslCipherConfig),
        suites: named(Param::opensslCipherSuiteConfig),
        withhold_certificate: params.bool(Param::tlsWithholdClientCertificate),
        ..settings.clone()
    };
    let read: ReadFile = Arc::new(|path| std::fs::read(path));
    let (unchecked, nobody) = (settings.allow_invalid_certificates, settings.ca_file.is_none());
    let tls = Tls::load(env.clone(), settings, read)?;
    if unchecked {
        let text = "While invalid X509 certificates may be used to connect to this server, they will not be considered \
                    permissible for authentication";
        env.log.warn(Component::Control, 22_124, text, |_| {});
    }
    if nobody {
        let text = "No client certificate validation can be performed since no CA file has been provided. Please specify \
                    an sslCAFile parameter";
        env.log.warn(Component::Control, 22_133, text, |_| {});
    }
    let net = Arc::new(TlsNet::new(env.net.clone(), tls.clone()));
    Ok((Env { net, ..env }, Some(tls)))
}

/// As `getParameter` shows it.
pub fn mode_of(tls: Option<&Arc<Tls>>) -> TlsMode {
    tls.map_or(TlsMode::Disabled, |tls| tls.mode())
}

/// Warns once a day of a certificate that ends soon, from the start on.
pub fn watch_expiry(env: &Env, tls: &Arc<Tls>, warning_days: i64) {
    let (env, tls) = (env.named("CertificateExpirationMonitor"), Arc::downgrade(tls));
    env.clone().spawn("certificate expiry", async move {
        while let Some(tls) = tls.upgrade() {
            let ends = tls.own().expires_ms;
            drop(tls);
            let shown = pando_base::calendar::iso(ends) + "Z";
            let left = ends.saturating_sub(env.clock.wall_ms());
            if left < 0 {
                env.log.warn(Component::Control, 23_785, "Server certificate has expired", |a| {
                    a.str("certExpiration", &shown);
                });
            } else if left < warning_days.saturating_mul(24 * 3_600_000) {
                env.log.warn(Component::Control, 23_786, "Server certificate will expire soon", |a| {
                    // In hours, whatever the name promises.
                    a.str("certExpiration", &shown).i64("validDuration", left / 3_600_000);
                });
            }
            env.clock.sleep(Duration::from_secs(limits::TLS_EXPIRY_LOOK_SECS)).await;
        }
    });
}
