//! What the audit log has of the server's start, its end, and new files.

use crate::Server;
use pando_audit::Event;
use pando_base::Result;

impl Server {
    /// Records something that the server does, for whoever this thread works for.
    pub(crate) fn audit(&self, event: impl FnOnce() -> Event) {
        if let Some(log) = self.instance.audit() {
            log.record(&log.originator(), &event());
        }
    }
    pub(crate) fn audit_startup(&self) {
        self.audit(|| {
            let parameter = self.settings.cluster_parameters.change_streams().document();
            Event::startup(&self.config.parsed, &[parameter])
        });
    }
    /// Begins a new file of the audit log; nothing where there is none. 37 when the old one stays in use.
    pub fn rotate_audit_log(&self) -> Result<()> {
        pando_logins::audit::rotate(&self.instance, &*self.config.host)
    }
}
