//! How many logins began and succeeded, by mechanism (`security.authentication` of `serverStatus`).

use pando_auth::Mechanism;
use pando_auth::certificate::X509;
use pando_metrics::{Collector, Counter};

/// Of one mechanism.
#[derive(Default)]
struct OfMechanism {
    all: Pair,
    /// Those whose first message came with a `hello`.
    speculative: Pair,
    /// Those of members.
    cluster: Pair,
}

#[derive(Default)]
struct Pair {
    received: Counter,
    successful: Counter,
}

/// Of all of them.
#[derive(Default)]
pub struct LoginCounts {
    of_sha1: OfMechanism,
    of_sha256: OfMechanism,
    of_x509: OfMechanism,
    /// Asked for what a user can log in with.
    pub(crate) asked_for_mechanisms: Counter,
    /// Failures of which the log has no line, as there were many from one address.
    pub(crate) failures_not_logged: Counter,
}

impl LoginCounts {
    fn of(&self, mechanism: Mechanism) -> &OfMechanism {
        match mechanism {
            Mechanism::ScramSha1 => &self.of_sha1,
            Mechanism::ScramSha256 => &self.of_sha256,
        }
    }
    pub(crate) fn began(&self, mechanism: Mechanism, speculative: bool, of_member: bool) {
        self.of(mechanism).each(speculative, of_member, |pair| pair.received.inc());
    }
    pub(crate) fn succeeded(&self, mechanism: Mechanism, speculative: bool, of_member: bool) {
        self.of(mechanism).each(speculative, of_member, |pair| pair.successful.inc());
    }
    pub(crate) fn began_by_certificate(&self, speculative: bool, of_member: bool) {
        self.of_x509.each(speculative, of_member, |pair| pair.received.inc());
    }
    pub(crate) fn succeeded_by_certificate(&self, speculative: bool, of_member: bool) {
        self.of_x509.each(speculative, of_member, |pair| pair.successful.inc());
    }
    pub fn collect(&self, to: &mut Collector<'_>) {
        to.within("authentication", |to| {
            let help = "Requests for the mechanisms of a user";
            to.counter("saslSupportedMechsReceived", self.asked_for_mechanisms.get(), "requests", help);
            let help = "Failed logins that the log was not told of, as there were many from one address";
            to.counter("failuresNotLogged", self.failures_not_logged.get(), "logins", help);
            to.within("mechanisms", |to| {
                for (name, of) in [
                    (X509, &self.of_x509),
                    (Mechanism::ScramSha1.name(), &self.of_sha1),
                    (Mechanism::ScramSha256.name(), &self.of_sha256),
                ] {
                    to.labelled("mechanism", name, |to| {
                        to.within("speculativeAuthenticate", |to| of.speculative.collect(to));
                        to.within("clusterAuthenticate", |to| of.cluster.collect(to));
                        to.within("authenticate", |to| of.all.collect(to));
                    });
                }
            });
        });
    }
}

impl OfMechanism {
    fn each(&self, speculative: bool, of_member: bool, count: impl Fn(&Pair)) {
        count(&self.all);
        if speculative {
            count(&self.speculative);
        }
        if of_member {
            count(&self.cluster);
        }
    }
}

impl Pair {
    fn collect(&self, to: &mut Collector<'_>) {
        to.counter("received", self.received.get(), "logins", "Logins that began");
        to.counter("successful", self.successful.get(), "logins", "Logins that succeeded");
    }
}
