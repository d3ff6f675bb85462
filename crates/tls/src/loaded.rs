//! What the files say at one moment, ready to be used: replaced as a whole.

use crate::certificate::Facts;
use crate::files::{Files, Whose, invalid};
use crate::protocols;
use crate::settings::{ReadFile, Settings};
use crate::verify::{Incoming, Outgoing, Trust};
use pando_base::{Millis, Result};
use pando_env::tls::OwnCertificate;
use pando_env::{Component, Log};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage};
use rustls::{ClientConfig, ServerConfig};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

pub(crate) struct Loaded {
    /// `None` = nobody can connect here.
    pub(crate) acceptor: Option<Arc<ServerConfig>>,
    pub(crate) dialer: Arc<ClientConfig>,
    /// Who is believed of those that connect; `None` = nobody is asked.
    pub(crate) incoming: Option<Arc<Trust>>,
    pub(crate) own: OwnCertificate,
}

/// A certificate with its chain, its key, and the file that they are from.
struct Identity<'a> {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    path: &'a Path,
    whose: Whose,
}

pub(crate) fn load(settings: &Settings, read: &ReadFile, log: &Log) -> Result<Loaded> {
    let files = Files { read, log };
    let provider = Arc::new(protocols::provider(&settings.ciphers, &settings.suites)?);
    let algorithms = provider.signature_verification_algorithms;
    let server = identity(
        &files,
        settings.certificate_key_file.as_deref(),
        &settings.certificate_key_password,
        Whose::Server,
    )?;
    let cluster =
        identity(&files, settings.cluster_file.as_deref(), &settings.cluster_password, Whose::Cluster)?;
    let outgoing = trust(&files, settings, settings.ca_file.as_deref(), algorithms)?;
    let incoming = match &settings.cluster_ca_file {
        Some(path) => trust(&files, settings, Some(path), algorithms)?,
        None => outgoing.clone(),
    };
    let told = server.iter().chain(&cluster).map(facts).collect::<Result<Vec<_>>>()?;
    let own = OwnCertificate {
        subject: told.first().map(|(facts, ..)| facts.subject.clone()).unwrap_or_default(),
        has_authority: outgoing.is_some(),
        expires_ms: told.first().map_or(Millis::MAX, |(facts, ..)| facts.not_after_ms),
    };
    let shown = match (settings.withhold_certificate, cluster) {
        (true, _) => None,
        (false, Some(cluster)) => Some(cluster),
        (false, None) => server.as_ref().map(Identity::again),
    };
    let loaded = Loaded {
        dialer: Arc::new(dialer(&files, settings, &provider, outgoing, shown)?),
        acceptor: match server {
            Some(server) => Some(Arc::new(acceptor(&files, settings, &provider, incoming.clone(), server)?)),
            None => None,
        },
        incoming,
        own,
    };
    tell(log, &told);
    Ok(loaded)
}

fn tell(log: &Log, told: &[(Facts, Whose, String)]) {
    for (facts, whose, file) in told {
        facts.log(log, whose.name(), file);
        if !facts.has_alternatives && *whose == Whose::Server {
            let text = "Server certificate has no compatible Subject Alternative Name. This may prevent TLS clients from \
                        connecting";
            log.warn(Component::Network, 551_190, text, |_| {});
        }
    }
}

impl Identity<'_> {
    fn again(&self) -> Self {
        Identity { chain: self.chain.clone(), key: self.key.clone_key(), ..*self }
    }
}

fn identity<'a>(
    files: &Files<'_>,
    path: Option<&'a Path>,
    password: &Option<Zeroizing<String>>,
    whose: Whose,
) -> Result<Option<Identity<'a>>> {
    let Some(path) = path else { return Ok(None) };
    let password = password.as_ref().map(|p| p.as_str());
    let (chain, key) = files.certificate_and_key(path, password, whose)?;
    Ok(Some(Identity { chain, key, path, whose }))
}

/// What a certificate says of itself.
fn facts(of: &Identity<'_>) -> Result<(Facts, Whose, String)> {
    let facts = of.chain.first().and_then(|der| Facts::of(der)).ok_or_else(|| of.whose.refusal())?;
    Ok((facts, of.whose, of.path.to_string_lossy().into_owned()))
}

fn trust(
    files: &Files<'_>,
    settings: &Settings,
    path: Option<&Path>,
    algorithms: WebPkiSupportedAlgorithms,
) -> Result<Option<Arc<Trust>>> {
    let Some(path) = path else { return Ok(None) };
    let certificates = files.authorities(path)?;
    let mut anchors = Vec::new();
    for der in &certificates {
        let anchor = webpki::anchor_from_trusted_cert(der).map_err(|e| {
            invalid(format!("cannot read certificate authority file: {} error:{e}", path.display()))
        })?;
        anchors.push(anchor.to_owned());
    }
    let revoked = match &settings.crl_file {
        Some(path) => files.revoked(path)?,
        None => Vec::new(),
    };
    Ok(Some(Arc::new(Trust { certificates, anchors, revoked, algorithms })))
}

fn unusable(e: rustls::Error) -> pando_base::Error {
    invalid(format!("TLS cannot be set up: {e}"))
}

fn acceptor(
    files: &Files<'_>,
    settings: &Settings,
    provider: &Arc<CryptoProvider>,
    incoming: Option<Arc<Trust>>,
    shown: Identity<'_>,
) -> Result<ServerConfig> {
    let versions = protocols::enabled(&settings.disabled)?;
    let verifier: Arc<dyn ClientCertVerifier> = match incoming {
        None => Arc::new(NoClientAuth),
        Some(trust) => Arc::new(Incoming {
            hints: trust.anchors.iter().map(|a| rustls::DistinguishedName::in_sequence(&a.subject)).collect(),
            mandatory: !settings.allow_no_certificate,
            allow_invalid: settings.allow_invalid_certificates,
            algorithms: trust.algorithms,
            trust,
        }),
    };
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&versions).map_err(unusable)?;
    let mut config = builder
        .with_client_cert_verifier(verifier)
        .with_single_cert(shown.chain, shown.key)
        .map_err(|e| files.unusable_key(shown.path, shown.whose, &e))?;
    // Every connection shows its certificate anew: what has been taken back meanwhile is seen.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn dialer(
    files: &Files<'_>,
    settings: &Settings,
    provider: &Arc<CryptoProvider>,
    outgoing: Option<Arc<Trust>>,
    shown: Option<Identity<'_>>,
) -> Result<ClientConfig> {
    let versions = protocols::enabled(&settings.disabled)?;
    let verifier = Outgoing {
        trust: outgoing,
        allow_invalid: settings.allow_invalid_certificates,
        allow_other_host: settings.allow_invalid_hostnames,
        algorithms: provider.signature_verification_algorithms,
        log: files.log.named("ReplNetwork"),
    };
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&versions).map_err(unusable)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => builder
            .with_client_auth_cert(shown.chain, shown.key)
            .map_err(|e| files.unusable_key(shown.path, shown.whose, &e))?,
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}
