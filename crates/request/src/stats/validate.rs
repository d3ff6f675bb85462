//! The arguments of `validate`.

use crate::declare::arguments;
use crate::declare::kinds::Truth;
use pando_base::{Error, ErrorCode, Result};

arguments! {
    /// What `validate` asks for.
    pub struct ValidateArgs of "validate" as "validate", keeping {
        "full" full: optional Truth,
        "background" background: optional Truth,
        "repair" repair: optional Truth,
        "metadata" metadata: optional Truth,
        "enforceFastCount" counted: optional Truth,
    }
}

impl ValidateArgs<'_> {
    /// What the arguments mean together. `is_replicated`: other members would have to be repaired alike.
    pub fn check(&self, is_replicated: bool) -> Result<()> {
        let refuse = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        let on = |flag: Option<bool>| flag == Some(true);
        let (full, background, repair, counted) =
            (on(self.full), on(self.background), on(self.repair), on(self.counted));
        for (on, other) in [(full, "full"), (counted, "enforceFastCount"), (repair, "repair")] {
            if background && on {
                return refuse(format!(
                    "Running the validate command with both {{ background: true }} and {{ {other}: true }} is not \
                     supported."
                ));
            }
        }
        if repair && is_replicated {
            let text = "Running the validate command with { repair: true } can only be performed in standalone mode.";
            return refuse(text.to_owned());
        }
        if on(self.metadata) && (background || full || counted || repair) {
            let text = "Running the validate command with { metadata: true } is not supported with any other options";
            return refuse(text.to_owned());
        }
        if repair {
            let text = "this server does not repair collections";
            return Err(Error::new(ErrorCode::CommandNotSupported, text));
        }
        Ok(())
    }
}
