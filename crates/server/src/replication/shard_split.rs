//! What a shard split does with the configuration of the donor set (SV-SPLIT-1, SV-SPLIT-9, SV-SPLIT-10).

use super::Replication;
use crate::object_id::new_object_id;
use pando_base::{Error, ErrorCode, Result};
use pando_repl::topology::{Event, split};

impl Replication {
    /// The hosts that would leave for the set `set_name`, or why the configuration in force cannot be split so.
    pub fn check_split(&self, tag: &str, set_name: &str) -> Result<Vec<String>> {
        split::check_recipients(&*self.member.require_config()?, tag, set_name)
    }
    /// The hosts that leave, where the configuration in force is the one that splits off the set `set_name`.
    pub fn is_split_for(&self, set_name: &str) -> Option<Vec<String>> {
        split::is_split_for(&*self.member.config()?, set_name)
    }
    /// A configuration of this node may come into force though it is not yet: whether the set is split is not known meanwhile.
    pub fn is_reconfiguring(&self) -> Result<bool> {
        Ok(self.coordinator()?.read(|core| core.has_config_on_its_way()))
    }
    /// Who was a source a moment ago may be a member of the set that this node has left meanwhile.
    ///
    /// # Errors
    /// `InvalidSyncSource`: another source is looked for.
    pub(super) fn check_is_member(&self, host: &str) -> Result<()> {
        let config = self.member.config();
        if config.is_some_and(|config| config.members.iter().any(|m| m.host == host)) {
            return Ok(());
        }
        let text = format!("{host} is no member of this node's set");
        Err(Error::new(ErrorCode::InvalidSyncSource, text))
    }
    /// A reconfiguration by which the members with the key `tag` leave for the set `set_name`. Returns once a majority of those that stay
    /// has it; where it is in force already, it only waits for that. Only on the primary, of members with `--serverless`. It may take the
    /// place of the one by which all members of the set `before` have left.
    pub async fn install_split_config(&self, tag: &str, set_name: &str, before: Option<&str>) -> Result<()> {
        let (tag, set_name) = (tag.to_owned(), set_name.to_owned());
        let before = before.map(str::to_owned);
        let replica_set_id = new_object_id(&self.env);
        let split = |token| Event::Split { token, tag, set_name, replica_set_id, before };
        self.coordinator()?.command(split).await.map(drop)
    }
}
